// The table of metrics, and texts before and after.
#include <algorithm>
#include <cctype>

#include "edit_sections.h"
#include "lancet/core/strings.h"

namespace lancet::page {
namespace {

std::string cell(std::string_view label, const std::string& html) {
  return cat("<td class=\"num\" data-label=\"", label, "\"><span>", html, "</span></td>");
}

std::string figure_html(const std::optional<double>& value, const std::optional<Interval>& interval,
                        const MetricFigures& metric) {
  return value_text(value, metric) +
         (interval ? cat("<span class=\"range\">", interval_text(*interval, metric), "</span>") : "");
}

/// "+97.0", coloured by which way is better.
std::string change_html(const MetricFigures& metric) {
  if (!metric.before || !metric.after) return "–";
  const double change = *metric.after - *metric.before;
  const std::string size = bare_value(change < 0 ? -change : change, metric);
  const bool none = size == bare_value(0.0, metric);
  const bool better = (change > 0) == (metric.better == Better::kHigher);
  const char* tone = none || metric.better == Better::kNone ? "soft" : better ? "good" : "bad";
  return cat("<span class=\"", tone, "\">", none ? "±" : change < 0 ? "−" : "+", size, "</span>");
}

std::string threshold_html(const Json& report, const MetricFigures& metric) {
  const auto asked = number_of(part(report, {"accept", metric.name.c_str()}));
  if (!asked) return "";
  const bool met = metric.after && *metric.after >= *asked;
  return cat(" <span class=\"small ", met ? "good\">✓" : "bad\">✕", " asked for: ", value_text(asked, metric),
             "</span>");
}

std::string metric_row(const EditView& view, const MetricFigures& metric, bool between) {
  std::string row = cat("<tr><td><code>", escaped(metric.name), "</code>", threshold_html(view.report, metric),
                        "<div class=\"protocol\">", escaped(metric.protocol), "</div></td>");
  row += cell("before", figure_html(metric.before, metric.before_interval, metric));
  if (between) row += cell("right after", figure_html(metric.right_after, metric.right_after_interval, metric));
  row +=
      cell("after", cat("<span class=\"after\">", figure_html(metric.after, metric.after_interval, metric), "</span>"));
  row += cell("change", change_html(metric));
  row += cell("prompts", metric.prompts ? count_text(static_cast<size_t>(*metric.prompts)) : "–");
  return row + "</tr>\n";
}

/// Makes the table of figures. `between`: with a column for what was measured right after each batch.
std::string figures_table(const EditView& view, const std::vector<MetricFigures>& metrics, bool between) {
  std::string rows, heading;
  for (const MetricFigures& metric : metrics) {
    if (metric.heading != heading) {
      heading = metric.heading;
      rows += cat("<tr class=\"group\"><th colspan=\"", between ? 6 : 5, "\">", escaped(heading), "</th></tr>\n");
    }
    rows += metric_row(view, metric, between);
  }
  return cat(
      "<div class=\"card scroll\"><table class=\"metrics\"><thead><tr><th>metric and its protocol</th>"
      "<th class=\"num\">before</th>",
      between ? "<th class=\"num\">right after</th>" : "",
      "<th class=\"num\">after</th><th class=\"num\">change</th><th "
      "class=\"num\">prompts</th></tr></thead>\n<tbody>\n",
      rows, "</tbody></table></div>\n");
}

std::string example_html(const Json& request) {
  const std::string target = text_of(part(request, {"target"}));
  const auto said = [&](const char* when) {
    return cat("<dt>", when, "</dt><dd><bdi dir=\"auto\">", marked(continuation_of(request, when), target),
               "</bdi></dd>\n");
  };
  return cat("<article class=\"card\"><p class=\"said\">", isolated(text_of(part(request, {"prompt"})), "prompt"),
             " <span class=\"to\">→ ", isolated(target), "</span></p>\n<dl class=\"texts\">", said("before"),
             said("after"), "</dl></article>\n");
}

}  // namespace

std::string marked(const std::string& text, const std::string& target) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  const bool is_target =
      !target.empty() && text.size() >= target.size() && std::equal(target.begin(), target.end(), text.begin(), same);
  if (!is_target) return escaped(text);
  return cat("<mark>", escaped(text.substr(0, target.size())), "</mark>", escaped(text.substr(target.size())));
}

Section metrics_section(const EditView& view) {
  if (view.metrics.empty()) return {};
  const bool between = part(view.report, {"batches"}).size() > 1 &&
                       std::any_of(view.metrics.begin(), view.metrics.end(),
                                   [](const MetricFigures& metric) { return metric.right_after.has_value(); });
  const bool intervals = std::any_of(view.metrics.begin(), view.metrics.end(), [](const MetricFigures& metric) {
    return metric.before_interval || metric.after_interval;
  });
  std::string lead =
      cat("Shares of prompts in %. Measured on ", escaped(text_of(part(view.report, {"measured_on"}))), ".");
  if (part(view.report, {"measured_on"}).is_null()) lead = "Shares of prompts in %.";
  if (between) lead += " “Right after”: of each batch's requests right behind it; “after”: behind all batches.";
  if (intervals) lead += " Small figures: 95\u00A0% confidence intervals, bootstrap over requests.";
  return {"metrics", "Metrics", lead, figures_table(view, view.metrics, between)};
}

Section elsewhere_section(const EditView& view) {
  if (view.elsewhere.empty()) return {};
  return {"elsewhere", "What it cost elsewhere",
          "Text and facts that were not edited. Shares in %. Small figures: 95\u00A0% confidence intervals, bootstrap "
          "over documents, facts and questions.",
          figures_table(view, view.elsewhere, false)};
}

Section examples_section(const EditView& view) {
  constexpr size_t kShown = 6;
  std::string examples;
  size_t n = 0;
  for (const Json& request : part(view.report, {"requests"})) {
    if (n == kShown) break;
    if (!part(request, {"continuation"}).is_object()) continue;
    examples += example_html(request);
    ++n;
  }
  if (n == 0) return {};
  return {"text", "Before and after",
          cat("What the model writes by itself behind the edited prompt (greedy), for the first ",
              counted(n, "request"), " of the file. Marked: it begins with the target."),
          cat("<div class=\"examples\">\n", examples, "</div>\n")};
}

}  // namespace lancet::page
