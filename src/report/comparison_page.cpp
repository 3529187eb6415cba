// The page about several runs. Runs on the same model and requests are a group; numbers are compared within groups
// only.
#include <algorithm>
#include <map>

#include "html.h"
#include "job_differences.h"
#include "lancet/core/hash.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace page {
namespace {

struct ComparedRun {
  const RunDocument& document;
  size_t color = 0;
  Json report;  ///< null: the run failed
  std::vector<MetricFigures> metrics;
};

/// Runs whose numbers may stand side by side.
using RunGroup = std::vector<ComparedRun>;

std::string requests_hash(const Json& report) {
  ContentHash hash;
  for (const Json& request : part(report, {"requests"}))
    for (const char* key : {"id", "prompt", "subject", "target", "target_true"})
      hash.add(any_text(part(request, {key})));
  return hash.hex();
}

/// In the order of their first runs.
std::vector<RunGroup> grouped(std::span<const RunDocument> documents) {
  std::vector<RunGroup> groups;
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < documents.size(); ++i) {
    if (documents[i].json.empty()) continue;
    ComparedRun run{documents[i], i, parse_report(documents[i]), {}};
    run.metrics = figures_of(part(run.report, {"metrics"}));
    const std::string key = text_of(part(run.report, {"model", "content_hash"})) + requests_hash(run.report);
    const auto [found, is_new] = places.emplace(key, groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(std::move(run));
  }
  return groups;
}

/// A metric with one definition, of each run that measured it so.
struct MetricLine {
  MetricFigures shown;
  std::vector<const MetricFigures*> of_runs;  ///< null: not measured, or by another protocol
};

std::vector<MetricLine> metric_lines(const RunGroup& group) {
  std::vector<MetricLine> lines;
  for (size_t i = 0; i < group.size(); ++i)
    for (const MetricFigures& metric : group[i].metrics) {
      const auto same = [&](const MetricLine& line) {
        return line.shown.name == metric.name && line.shown.protocol == metric.protocol &&
               line.shown.unit == metric.unit;
      };
      auto line = std::find_if(lines.begin(), lines.end(), same);
      if (line == lines.end()) {
        lines.push_back({metric, std::vector<const MetricFigures*>(group.size())});
        line = lines.end() - 1;
      }
      line->of_runs[i] = &metric;
    }
  return lines;
}

/// The best value after the edit; nullopt: there is no best.
std::optional<double> best_of(const MetricLine& line) {
  std::optional<double> best;
  size_t n = 0;
  for (const MetricFigures* metric : line.of_runs) {
    if (metric == nullptr || !metric->after || metric->better == Better::kNone) continue;
    ++n;
    if (!best || (metric->better == Better::kHigher ? *metric->after > *best : *metric->after < *best))
      best = metric->after;
  }
  return n > 1 ? best : std::nullopt;
}

std::string metric_cell(const MetricFigures* metric, const std::optional<double>& best) {
  if (metric == nullptr) return "<td class=\"num soft\">–</td>";
  std::string out = cat("<td class=\"num", best && metric->after == best ? " best" : "", "\"><span class=\"after\">",
                        value_text(metric->after, *metric), "</span>");
  if (metric->after_interval)
    out += cat("<span class=\"range\">", interval_text(*metric->after_interval, *metric), "</span>");
  if (metric->before) out += cat("<span class=\"from\">from ", bare_value(metric->before, *metric), "</span>");
  return out + "</td>";
}

std::string head_row(std::string_view first, std::span<const std::string> labels) {
  std::string out = cat("<thead><tr><th>", first, "</th>");
  for (const std::string& label : labels) out += cat("<th class=\"num\">", isolated(label), "</th>");
  return out + "</tr></thead>\n";
}

std::vector<std::string> labels_of(const RunGroup& group) {
  std::vector<std::string> labels;
  for (const ComparedRun& run : group) labels.push_back(run.document.label);
  return labels;
}

std::string status_row(const RunGroup& group) {
  std::string out = "<tr><td>verdict</td>";
  for (const ComparedRun& run : group) {
    const std::string status = text_of(part(run.report, {"status"}));
    out += cat("<td class=\"num ", status == "rejected" ? "bad\">✕ " : "good\">✓ ", escaped(status), "</td>");
  }
  return out + "</tr>\n";
}

std::string metrics_table(const RunGroup& group) {
  std::string rows = status_row(group), heading;
  for (const MetricLine& line : metric_lines(group)) {
    if (line.shown.heading != heading) {
      heading = line.shown.heading;
      rows += cat("<tr class=\"group\"><th colspan=\"", group.size() + 1, "\">", escaped(heading), "</th></tr>\n");
    }
    rows += cat("<tr><td><code>", escaped(line.shown.name), "</code><div class=\"protocol\">",
                escaped(line.shown.protocol), "</div></td>");
    for (const MetricFigures* metric : line.of_runs) rows += metric_cell(metric, best_of(line));
    rows += "</tr>\n";
  }
  return cat("<div class=\"card scroll\"><table class=\"runs\">", head_row("metric", labels_of(group)), "<tbody>\n",
             rows, "</tbody></table></div>\n");
}

const MetricFigures* find_metric(const ComparedRun& run, const std::string& name) {
  const auto found = std::find_if(run.metrics.begin(), run.metrics.end(),
                                  [&](const MetricFigures& metric) { return metric.name == name; });
  return found == run.metrics.end() || !found->after ? nullptr : &*found;
}

/// The points that no other one beats in both, as steps from left to right.
PlotSeries front_of(const std::vector<PlotPoint>& points) {
  std::vector<PlotPoint> front;
  for (const PlotPoint& point : points)
    if (std::none_of(points.begin(), points.end(), [&](const PlotPoint& other) {
          return other.x >= point.x && other.y >= point.y && (other.x > point.x || other.y > point.y);
        }))
      front.push_back(point);
  std::sort(front.begin(), front.end(), [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
  PlotSeries steps;
  for (size_t i = 0; i < front.size(); ++i) {
    if (i > 0) {
      steps.x.push_back(front[i - 1].x);
      steps.y.push_back(front[i].y);
    }
    steps.x.push_back(front[i].x);
    steps.y.push_back(front[i].y);
  }
  return steps;
}

/// Success against specificity, for each way in which both are measured.
void add_pareto_plots(const RunGroup& group, std::vector<std::pair<std::string, std::string>>& plots) {
  for (const MetricLine& line : metric_lines(group)) {
    const std::string& name = line.shown.name;
    const bool is_success = name.starts_with("efficacy_") && line.shown.is_share();
    if (!is_success) continue;
    const std::string other = "specificity_" + name.substr(name.find('_') + 1);
    std::vector<PlotPoint> points;
    for (size_t i = 0; i < group.size(); ++i) {
      const MetricFigures* specificity = find_metric(group[i], other);
      if (line.of_runs[i] != nullptr && line.of_runs[i]->after && specificity != nullptr)
        points.push_back({group[i].document.label, *specificity->after, *line.of_runs[i]->after, group[i].color});
    }
    if (points.size() < 2) continue;
    const PlotFrame frame{.title = "Success against specificity",
                          .subtitle = "dashed: the runs that no other one beats in both",
                          .x = {.label = other + ", %", .numbers = AxisNumbers::kPercent},
                          .y = {.label = name + ", %", .numbers = AxisNumbers::kPercent}};
    plots.emplace_back(scatter_plot(frame, points, std::vector{front_of(points)}), "");
  }
}

void add_cost_plots(const RunGroup& group, std::vector<std::pair<std::string, std::string>>& plots) {
  std::vector<PlotBar> times, peaks;
  for (const ComparedRun& run : group) {
    double seconds = 0;
    for (const Json& batch : part(run.report, {"batches"})) seconds += number_of(part(batch, {"seconds"})).value_or(0);
    const size_t n = part(run.report, {"requests"}).size();
    if (n > 0 && seconds > 0) {
      const double each = seconds / static_cast<double>(n);
      times.push_back({run.document.label, each, cat(short_number(each), " s"), run.color});
    }
    for (const auto& [device, bytes] : peaks_of(part(run.report, {"peak_bytes"})))
      peaks.push_back(
          {cat(run.document.label, ", ", device), bytes, bytes_text(static_cast<uint64_t>(bytes)), run.color});
  }
  if (!times.empty())
    plots.emplace_back(bar_plot({.title = "Time per edit",
                                 .subtitle = "editing alone, without load, statistics and measures",
                                 .x = {},
                                 .y = {}},
                                times),
                       "");
  if (!peaks.empty())
    plots.emplace_back(
        bar_plot({.title = "Peak memory", .subtitle = "CPU: resident; GPU: in tensors", .x = {}, .y = {}}, peaks), "");
}

std::string group_lead(const RunGroup& group) {
  const Json& report = group.front().report;
  return cat(counted(part(report, {"requests"}).size(), "request"), " on ", isolated(model_name(report)), " <code>",
             escaped(text_of(part(report, {"model", "content_hash"}))),
             "</code>. After the edit; small: 95\u00A0% confidence interval where measured, and the value before. "
             "Green: the best of a row.");
}

/// What must not be compared, said before any number.
std::string notices(std::span<const RunDocument> documents, const std::vector<RunGroup>& groups) {
  std::string items;
  if (groups.size() > 1) {
    items +=
        cat("<li>These runs are not all on the same model and requests: their numbers are not comparable across the ",
            groups.size(), " tables below.</li>\n");
  }
  for (const RunGroup& group : groups) {
    std::map<std::string, size_t> definitions;
    for (const MetricLine& line : metric_lines(group)) ++definitions[line.shown.name];
    for (const auto& [name, n] : definitions)
      if (n > 1)
        items +=
            cat("<li><code>", escaped(name), "</code> was measured by ", n, " different protocols: a row each.</li>\n");
  }
  for (const RunDocument& document : documents) {
    if (document.json.empty())
      items += cat("<li>", isolated(document.label), " failed: ", isolated(document.failure), "</li>\n");
    else if (document.job_yaml.empty())
      items += cat("<li>", isolated(document.label),
                   ": there is no job.yaml, so what its job differs in is not known.</li>\n");
  }
  return items.empty() ? "" : cat("<div class=\"note warn\"><ul>\n", items, "</ul></div>\n");
}

Section differences_section(std::span<const RunDocument> documents) {
  std::vector<std::string> jobs, labels;
  for (const RunDocument& document : documents) {
    jobs.push_back(document.job_yaml);
    labels.push_back(document.label);
  }
  std::string rows;
  for (const JobDifference& difference : job_differences(jobs)) {
    rows += cat("<tr><td><code>", escaped(difference.key), "</code></td>");
    for (const std::string& value : difference.values)
      rows += cat("<td class=\"num\"><code>", value.empty() ? "–" : escaped(excerpt(value, 120)), "</code></td>");
    rows += "</tr>\n";
  }
  if (rows.empty())
    return {"differences", "What the jobs differ in", "", "<p class=\"soft\">Nothing that is known.</p>\n"};
  return {"differences", "What the jobs differ in", "Keys of the resolved jobs that are not equal everywhere.",
          cat("<div class=\"card scroll\"><table class=\"runs compact\">", head_row("key", labels), "<tbody>\n", rows,
              "</tbody></table></div>\n")};
}

std::string comparison_header(std::span<const RunDocument> documents, const std::vector<RunGroup>& groups,
                              std::string_view title) {
  std::string facts;
  if (groups.size() == 1) {
    const Json& report = groups.front().front().report;
    facts += fact("Model", isolated(model_name(report)));
    facts += fact("Requests", count_text(part(report, {"requests"}).size()));
    facts += fact("Devices", escaped(text_of(part(report, {"run", "devices"}))));
  }
  return cat("<p class=\"eyebrow\">Comparison</p>\n<div class=\"headline\"><h1>", isolated(title),
             "</h1></div>\n<dl class=\"facts\">\n", fact("Runs", count_text(documents.size())), facts, "</dl>\n",
             notices(documents, groups));
}

}  // namespace
}  // namespace page

using namespace page;

std::string render_comparison(std::span<const RunDocument> runs, std::string_view title) {
  const std::vector<RunGroup> groups = grouped(runs);
  Page out{.title = std::string(title), .header = comparison_header(runs, groups, title), .sections = {}, .data = {}};
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string suffix = groups.size() > 1 ? cat(", group ", i + 1) : "",
                      id = groups.size() > 1 ? cat("-", i + 1) : "";
    std::vector<std::pair<std::string, std::string>> pareto, cost;
    add_pareto_plots(groups[i], pareto);
    add_cost_plots(groups[i], cost);
    out.sections.push_back({"metrics" + id, "Metrics" + suffix, group_lead(groups[i]), metrics_table(groups[i])});
    if (!pareto.empty()) out.sections.push_back({"balance" + id, "Balance" + suffix, "", figures(pareto)});
    if (!cost.empty()) out.sections.push_back({"cost" + id, "Time and memory" + suffix, "", figures(cost)});
  }
  out.sections.push_back(differences_section(runs));
  return page_html(out);
}

}  // namespace lancet
