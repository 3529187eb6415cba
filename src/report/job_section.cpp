// What the run was: model, statistics, contexts, weights, versions, the resolved job.
#include "edit_sections.h"
#include "lancet/core/strings.h"

namespace lancet::page {
namespace {

/// A row for a key that is there.
std::string pair(std::string_view name, const Json& json) {
  const std::string text = any_text(json);
  return text.empty() ? "" : cat("<dt>", name, "</dt><dd>", isolated(text), "</dd>\n");
}

std::string statistics_pairs(const Json& statistics) {
  if (!statistics.is_object()) return "";
  std::string out = pair("Corpus", part(statistics, {"corpus"}));
  const auto used = number_of(part(statistics, {"tokens_used"}));
  if (used) out += cat("<dt>Tokens</dt><dd>", count_text(static_cast<size_t>(*used)), "</dd>\n");
  const Json& imported = part(statistics, {"imported_from"});
  if (imported.is_array())
    for (const Json& file : imported)
      out += cat("<dt>Layer ", escaped(any_text(part(file, {"layer"}))), "</dt><dd>",
                 isolated(any_text(part(file, {"file"}))), " <code>", escaped(any_text(part(file, {"content_hash"}))),
                 "</code></dd>\n");
  return out + pair("Ridge", part(statistics, {"ridge"})) +
         pair("Layers from the cache", part(statistics, {"layers_from_cache"}));
}

std::string card(std::string_view title, const std::string& pairs) {
  return pairs.empty() ? "" : cat("<div><h3>", title, "</h3><dl class=\"card pairs\">\n", pairs, "</dl></div>\n");
}

std::string run_cards(const Json& report) {
  const Json& model = part(report, {"model"});
  const Json& run = part(report, {"run"});
  const Json& threads = part(run, {"threads"});
  return card("Model and program",
              pair("Folder", part(model, {"folder"})) + pair("Content hash", part(model, {"content_hash"})) +
                  pair("Precision", part(model, {"run_dtype"})) + pair("lancet", part(report, {"lancet"})) +
                  pair("Report", part(report, {"format"}))) +
         card("Run", pair("Devices", part(run, {"devices"})) + pair("Processes", part(run, {"ranks"})) +
                         pair("Threads", threads == 0 ? Json("all") : threads) + pair("Seed", part(run, {"seed"})) +
                         pair("Order", part(report, {"schedule", "order"})) +
                         pair("Continues", part(report, {"schedule", "continued_from"})) +
                         pair("Batches of values", part(report, {"values", "batches"})) +
                         pair("Values resumed", part(report, {"values", "resumed"}))) +
         card("Statistics", statistics_pairs(part(report, {"statistics"})));
}

std::string weights_html(const Json& report) {
  const Json& weights = part(report, {"weights"});
  if (!weights.is_array() || weights.empty()) return "";
  std::string rows;
  for (const Json& weight : weights) {
    const auto norm = number_of(part(weight, {"weight_norm"})), delta = number_of(part(weight, {"delta_norm"}));
    const auto lost = number_of(part(weight, {"rounding_loss"}));
    rows +=
        cat("<tr><td><code>", escaped(text_of(part(weight, {"name"}))), "</code></td><td class=\"num\">",
            norm ? short_number(*norm) : "–", "</td><td class=\"num\">", delta ? short_number(*delta) : "–",
            "</td><td class=\"num\">", norm && delta && *norm > 0 ? fixed(100 * *delta / *norm, 2) + "\u00A0%" : "–",
            "</td><td class=\"num\">", lost ? fixed(100 * *lost, 2) + "\u00A0%" : "–", "</td></tr>\n");
  }
  return cat(
      "<h3>Edited weights</h3><div class=\"card scroll\"><table class=\"compact\"><thead><tr><th>weight</th>"
      "<th class=\"num\">norm before</th><th class=\"num\">norm of the change</th><th class=\"num\">relative</th>"
      "<th class=\"num\">lost in rounding</th></tr></thead><tbody>\n",
      rows, "</tbody></table></div>\n");
}

std::string contexts_html(const Json& report) {
  const Json& contexts = part(report, {"contexts"});
  if (!contexts.is_array() || contexts.empty()) return "";
  std::string items;
  for (const Json& context : contexts) items += isolated(any_text(context)) + "\n";
  return cat("<h3>Contexts of the prompts</h3><div class=\"card\"><pre>", items, "</pre></div>\n");
}

}  // namespace

Section job_section(const EditView& view) {
  std::string body = cat("<div class=\"two\">\n", run_cards(view.report), "</div>\n", weights_html(view.report),
                         contexts_html(view.report));
  if (!view.run.job_yaml.empty())
    body += cat("<h3>The resolved job: job.yaml, runs again as it is</h3><div class=\"card\"><pre>",
                escaped(view.run.job_yaml), "</pre></div>\n");
  return {"job", "Job and versions", "", body};
}

}  // namespace lancet::page
