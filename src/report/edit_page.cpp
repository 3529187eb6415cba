// The page about one edit: its head, the first figures, and the sections in their order.
#include <algorithm>

#include "assets.h"
#include "edit_sections.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace page {
namespace {

bool is_rejected(const Json& report) { return text_of(part(report, {"status"})) == "rejected"; }

bool has_thresholds(const Json& report) {
  const Json& accept = part(report, {"accept"});
  return accept.is_object() && !accept.empty();
}

std::string badge(const char* tone, const std::string& text) {
  return cat("<span class=\"verdict ", tone, "\">", text, "</span>");
}

/// Whether what was asked for was met, and whether the edits took: red when none did.
std::string verdict_html(const Json& report) {
  std::string badges;
  if (is_rejected(report))
    badges += badge("no", "✕ Rejected");
  else if (has_thresholds(report))
    badges += badge("yes", "✓ Accepted");
  if (const auto count = took_of(report))
    badges += count->took == 0
                  ? badge("no", "✕ No edit took")
                  : badge("plain", cat(count_text(count->took), " of ", count_text(count->measured), " took"));
  else if (badges.empty())
    badges = badge("plain", "Not measured");
  return badges;
}

/// What "Accepted" and "Rejected" rest on.
std::string threshold_note(const Json& report) {
  const size_t n = has_thresholds(report) ? part(report, {"accept"}).size() : 0;
  if (is_rejected(report)) return cat(part(report, {"unmet"}).size(), " of ", counted(n, "threshold"), " missed");
  return n == 0 ? "no thresholds set" : n == 1 ? "1 threshold met" : cat("all ", n, " thresholds met");
}

/// Lists the first of the edits that did not take, and why.
std::string failures_html(const Json& report) {
  const auto count = took_of(report);
  if (!count || count->took == count->measured) return "";
  constexpr size_t kShown = 5;
  std::string items;
  size_t shown = 0;
  for (const Json& request : part(report, {"requests"})) {
    const std::string why = text_of(part(request, {"verdict", "why"}));
    if (why.empty() || shown++ >= kShown) continue;
    items += cat("<li>", isolated(text_of(part(request, {"prompt"}))), " → ",
                 isolated(text_of(part(request, {"target"}))), ": ", isolated(why), "</li>\n");
  }
  if (shown > kShown) items += cat("<li>and ", shown - kShown, " more, among the requests below</li>\n");
  return cat("<div class=\"note ", count->took == 0 ? "no" : "warn", "\"><b>", escaped(took_sentence(report)),
             "</b><ul>\n", items, "</ul></div>\n");
}

std::string unmet_html(const Json& report) {
  if (!is_rejected(report)) return "";
  std::string items;
  for (const Json& unmet : part(report, {"unmet"})) items += cat("<li>", escaped(any_text(unmet)), "</li>\n");
  return cat("<div class=\"note no\"><b>Nothing was exported:</b> the edit missed what the job asks for.<ul>\n", items,
             "</ul></div>\n");
}

std::string warnings_html(const Json& report) {
  const Json& warnings = part(report, {"warnings"});
  if (!warnings.is_array() || warnings.empty()) return "";
  constexpr size_t kShown = 5;
  std::string items;
  for (size_t i = 0; i < std::min(kShown, warnings.size()); ++i)
    items += cat("<li>", isolated(any_text(warnings[i])), "</li>\n");
  if (warnings.size() > kShown) items += cat("<li>and ", warnings.size() - kShown, " more, in report.json</li>\n");
  return cat("<div class=\"note warn\"><b>", counted(warnings.size(), "warning"), "</b><ul>\n", items, "</ul></div>\n");
}

std::string peak_text(const Json& report) {
  std::vector<std::string> texts;
  for (const auto& [device, bytes] : peaks_of(part(report, {"peak_bytes"})))
    texts.push_back(cat(escaped(device), " ", bytes_text(static_cast<uint64_t>(bytes))));
  return join(texts);
}

/// A bar from 0 to 100 % with the interval, and a mark where the metric was before.
std::string track_html(const MetricFigures& metric) {
  const auto percent = [](double share) { return fixed(100 * std::clamp(share, 0.0, 1.0), 2); };
  std::string out = cat("<i class=\"fill\" style=\"width:", percent(*metric.after), "%\"></i>");
  if (const auto& range = metric.after_interval)
    out += cat("<i class=\"range\" style=\"left:", percent(range->low),
               "%;width:", percent(std::max(0.0, range->high - range->low)), "%\"></i>");
  if (metric.before) out += cat("<i class=\"was\" style=\"left:", percent(*metric.before), "%\" title=\"before\"></i>");
  return cat("<div class=\"track\" aria-hidden=\"true\">", out, "</div>\n");
}

std::string tile_html(const MetricFigures& metric) {
  std::string note = metric.before ? cat("<b>", value_text(metric.before, metric), "</b> before") : "";
  if (metric.after_interval)
    note += cat(note.empty() ? "" : " · ", "95\u00A0% interval ", interval_text(*metric.after_interval, metric));
  return cat("<div class=\"card tile\"><h3>", escaped(metric.heading), " <code class=\"soft\">", escaped(metric.name),
             "</code></h3>\n<div class=\"value num\">", bare_value(metric.after, metric), "<small>%</small></div>\n",
             track_html(metric), "<p class=\"small soft\">", note, "</p></div>\n");
}

}  // namespace

std::string header_html(const EditView& view) {
  const Json& report = view.report;
  const auto took = took_of(report);
  const bool none_took = took && took->took == 0;
  const size_t n = part(report, {"requests"}).size(), batches = part(report, {"batches"}).size();
  const std::string version = text_of(part(report, {"lancet"}));
  std::string facts;
  facts += fact("Method", escaped(text_of(part(report, {"method"}))));
  facts += fact("Layers", layers_of(report));
  facts += fact("Requests", batches > 1 ? cat(count_text(n), " in ", count_text(batches), " batches") : count_text(n));
  facts += fact("Precision", escaped(text_of(part(report, {"model", "run_dtype"}))));
  facts += fact("Devices", escaped(text_of(part(report, {"run", "devices"}))));
  if (const auto seconds = total_seconds(report)) facts += fact("Time", seconds_text(*seconds));
  facts += fact("Peak memory", peak_text(report));
  if (took) facts += fact("Edits that took", escaped(took_sentence(report)));
  facts += fact("Thresholds", threshold_note(report));
  return cat("<p class=\"eyebrow\">Edit report", version.empty() ? "" : cat(" · lancet ", escaped(version)),
             "</p>\n<div class=\"headline\"><h1>", counted(n, "fact"),
             is_rejected(report) || none_took ? " tried in " : " edited in ", isolated(model_name(report)), "</h1>",
             verdict_html(report), "</div>\n<dl class=\"facts\">\n", facts, "</dl>\n", unmet_html(report),
             failures_html(report), warnings_html(report));
}

Section summary_section(const EditView& view) {
  std::string tiles;
  for (const MetricFigures& metric : headline_metrics(view.metrics)) tiles += tile_html(metric);
  if (tiles.empty()) return {};
  return {"summary", "At a glance", "After the edit; the mark on each bar is where it stood before.",
          cat("<div class=\"tiles\">\n", tiles, "</div>\n")};
}

}  // namespace page

using namespace page;

ReportFiles render_report(const RunDocument& run) {
  EditView view{run, parse_report(run), {}, {}};
  view.metrics = figures_of(part(view.report, {"metrics"}));
  view.elsewhere = figures_of(part(view.report, {"side_effects"}));
  Page out;
  out.title = cat(model_name(view.report), ": ", text_of(part(view.report, {"method"})), ", ",
                  text_of(part(view.report, {"status"})));
  out.header = header_html(view);
  for (Section& section :
       std::vector<Section>{summary_section(view), metrics_section(view), elsewhere_section(view),
                            examples_section(view), stream_section(view), losses_section(view), cost_section(view),
                            requests_section(view), journal_section(view), job_section(view)})
    if (!section.body.empty()) out.sections.push_back(std::move(section));
  out.data = requests_data(view);
  return {page_html(out), metrics_csv(view), requests_csv(view)};
}

}  // namespace lancet
