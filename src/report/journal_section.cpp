// The output's journal: the batches whose edits stand, and what was taken back.
#include "edit_sections.h"
#include "lancet/core/strings.h"

namespace lancet::page {
namespace {

std::string batch_rows(const Json& batches) {
  std::string rows;
  size_t number = 0;
  for (const Json& batch : batches)
    rows += cat("<tr><td class=\"num\">", ++number, "</td><td>", escaped(text_of(part(batch, {"when"}))), "</td><td>",
                escaped(text_of(part(batch, {"method"}))), "</td><td class=\"num\">", any_text(part(batch, {"edits"})),
                "</td></tr>\n");
  return rows;
}

std::string undone_html(const Json& undone) {
  if (!undone.is_array() || undone.empty()) return "";
  std::string items;
  for (const Json& undo : undone) {
    const std::string gives_up = text_of(part(undo, {"gives_up"}));
    items += cat("<li>", escaped(text_of(part(undo, {"when"}))), ", ", escaped(text_of(part(undo, {"mode"}))), ": ",
                 isolated(any_text(part(undo, {"edits"}))), gives_up.empty() ? "" : cat(" (", isolated(gives_up), ")"),
                 "</li>\n");
  }
  return cat("<h3>Taken back</h3><div class=\"card\"><ul>\n", items, "</ul></div>\n");
}

}  // namespace

Section journal_section(const EditView& view) {
  const Json& journal = part(view.report, {"journal"});
  const Json& batches = part(journal, {"batches"});
  const std::string undone = undone_html(part(journal, {"undone"}));
  if (!batches.is_array() || (batches.size() < 2 && undone.empty())) return {};
  return {"journal", "Journal", "The batches whose edits stand, in order; lancet log shows each edit.",
          cat("<div class=\"card scroll\"><table class=\"compact\"><thead><tr><th class=\"num\">batch</th><th>when</th>"
              "<th>method</th><th class=\"num\">edits</th></tr></thead><tbody>\n",
              batch_rows(batches), "</tbody></table></div>\n", undone)};
}

}  // namespace lancet::page
