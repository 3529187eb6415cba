#include "inside_edits.h"

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/edit_history/output_edits.h"

namespace lancet {
namespace {

Json untold(const std::string& problem) {
  log_warning(problem);
  return {{"edits", Json::array()}, {"base", ""}, {"problem", problem}};
}

}  // namespace

Json inside_edits(const std::filesystem::path& model) {
  if (!has_edits(model)) return nullptr;
  const std::optional<std::filesystem::path> found = find_journal(model);
  if (!found)
    return untold(cat(model.string(),
                      ": it has edits of an earlier version of lancet, which have no journal: the page ",
                      "cannot list them; lancet apply writes them anew"));
  try {
    const Journal journal = Journal::read(*found);
    return {{"edits", edits_json(journal).at("edits")}, {"base", journal.base().folder}, {"problem", ""}};
  } catch (const Error& error) {
    return untold(cat("the edits inside the model are not listed: ", error.what()));
  }
}

}  // namespace lancet
