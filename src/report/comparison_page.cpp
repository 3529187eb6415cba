// The page about several runs. Runs on the same model and requests are a group; numbers are compared within groups
// only.
#include <algorithm>
#include <map>
#include <set>

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

/// Groups the runs, in the order of their first ones.
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

/// A metric with one definition over the same prompts, of each run that measured it so.
struct MetricLine {
  MetricFigures shown;
  std::vector<const MetricFigures*> of_runs;  ///< null: not measured, by another protocol, or on other prompts
};

bool same_definition(const MetricFigures& a, const MetricFigures& b) {
  return a.name == b.name && a.protocol == b.protocol && a.unit == b.unit;
}

/// Whether the prompts are the same, as far as is known: older reports have the number of prompts alone.
bool same_prompts(const MetricFigures& a, const MetricFigures& b) {
  return a.prompts == b.prompts && (a.asked.empty() || b.asked.empty() || a.asked == b.asked);
}

std::vector<MetricLine> metric_lines(const RunGroup& group) {
  std::vector<MetricLine> lines;
  for (size_t i = 0; i < group.size(); ++i)
    for (const MetricFigures& metric : group[i].metrics) {
      const auto same = [&](const MetricLine& line) {
        return same_definition(line.shown, metric) && same_prompts(line.shown, metric);
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

/// "accepted" of a run that was asked for something, and met it.
std::string status_cell(const Json& report) {
  const std::string status = text_of(part(report, {"status"}));
  const Json& accept = part(report, {"accept"});
  if (status == "rejected") return "<td class=\"num bad\">✕ rejected</td>";
  if (status != "accepted" || !accept.is_object() || accept.empty()) return "<td class=\"num soft\">no thresholds</td>";
  return "<td class=\"num good\">✓ accepted</td>";
}

std::string took_cell(const Json& report) {
  const auto count = took_of(report);
  if (!count) return "<td class=\"num soft\">–</td>";
  return cat("<td class=\"num", count->took == 0 ? " bad\">✕ " : "\">", count_text(count->took), " of ",
             count_text(count->measured), "</td>");
}

std::string status_rows(const RunGroup& group) {
  std::string status = "<tr><td>verdict</td>",
              took =
                  "<tr><td>edits that took<div class=\"protocol\">the model says the target "
                  "(efficacy_argmax)</div></td>";
  for (const ComparedRun& run : group) {
    status += status_cell(run.report);
    took += took_cell(run.report);
  }
  return status + "</tr>\n" + took + "</tr>\n";
}

/// "; over 300 prompts".
std::string prompts_text(const MetricFigures& metric) {
  return metric.prompts ? cat("; over ", counted(static_cast<size_t>(*metric.prompts), "prompt")) : "";
}

std::string metrics_table(const RunGroup& group) {
  std::string rows = status_rows(group), heading;
  for (const MetricLine& line : metric_lines(group)) {
    if (line.shown.heading != heading) {
      heading = line.shown.heading;
      rows += cat("<tr class=\"group\"><th colspan=\"", group.size() + 1, "\">", escaped(heading), "</th></tr>\n");
    }
    rows += cat("<tr><td><code>", escaped(line.shown.name), "</code><div class=\"protocol\">",
                escaped(line.shown.protocol), prompts_text(line.shown), "</div></td>");
    for (const MetricFigures* metric : line.of_runs) rows += metric_cell(metric, best_of(line));
    rows += "</tr>\n";
  }
  return cat("<div class=\"card scroll\"><table class=\"runs\">", head_row("metric", labels_of(group)), "<tbody>\n",
             rows, "</tbody></table></div>\n");
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

/// Returns the points of the runs that have both.
std::vector<PlotPoint> points_of(const RunGroup& group, const MetricLine& x, const MetricLine& y) {
  std::vector<PlotPoint> points;
  for (size_t i = 0; i < group.size(); ++i)
    if (x.of_runs[i] != nullptr && y.of_runs[i] != nullptr && x.of_runs[i]->after && y.of_runs[i]->after)
      points.push_back({group[i].document.label, *x.of_runs[i]->after, *y.of_runs[i]->after, group[i].color});
  return points;
}

/// Success against specificity, for each way in which both are measured.
void add_pareto_plots(const RunGroup& group, std::vector<std::pair<std::string, std::string>>& plots) {
  const std::vector<MetricLine> lines = metric_lines(group);
  for (const MetricLine& success : lines) {
    const std::string& name = success.shown.name;
    if (!name.starts_with("efficacy_") || !success.shown.is_share()) continue;
    const std::string other = "specificity_" + name.substr(name.find('_') + 1);
    for (const MetricLine& specificity : lines) {
      if (specificity.shown.name != other) continue;
      const std::vector<PlotPoint> points = points_of(group, specificity, success);
      if (points.size() < 2) continue;
      const PlotFrame frame{.title = "Success against specificity",
                            .subtitle = "dashed: the runs that no other one beats in both",
                            .x = {.label = other + ", %", .numbers = AxisNumbers::kPercent},
                            .y = {.label = name + ", %", .numbers = AxisNumbers::kPercent}};
      plots.emplace_back(scatter_plot(frame, points, std::vector{front_of(points)}), "");
    }
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

/// Metrics that have several rows, and why.
std::string metric_notices(const RunGroup& group) {
  std::map<std::string, std::vector<MetricFigures>> by_name;
  for (const MetricLine& line : metric_lines(group)) by_name[line.shown.name].push_back(line.shown);
  std::string items;
  for (const auto& [name, rows] : by_name) {
    if (rows.size() < 2) continue;
    std::set<std::string> protocols;
    std::vector<std::string> counts;
    for (const MetricFigures& row : rows) {
      protocols.insert(row.protocol + row.unit);
      counts.push_back(row.prompts ? count_text(static_cast<size_t>(*row.prompts)) : "?");
    }
    items += cat("<li><code>", escaped(name), "</code> ",
                 protocols.size() > 1 ? cat("was measured by ", protocols.size(), " different protocols")
                                      : cat("rests on other prompts in some runs (", join(counts, ", "), " of them)"),
                 ": a row each, not comparable.</li>\n");
  }
  return items;
}

/// What must not be compared, said before any number.
std::string notices(std::span<const RunDocument> documents, const std::vector<RunGroup>& groups) {
  std::string items;
  if (groups.size() > 1) {
    items +=
        cat("<li>These runs are not all on the same model and requests: their numbers are not comparable across the ",
            groups.size(), " tables below.</li>\n");
  }
  for (const RunGroup& group : groups) items += metric_notices(group);
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
