// What is drawn: streams, the losses of the value optimisation, time and memory.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "edit_sections.h"
#include "lancet/core/strings.h"

namespace lancet::page {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double or_none(const Json& json) { return number_of(json).value_or(kNone); }

std::vector<double> counting(size_t n) {
  std::vector<double> numbers;
  for (size_t i = 1; i <= n; ++i) numbers.push_back(static_cast<double>(i));
  return numbers;
}

/// Round numbers of batches or steps; of few, each.
PlotAxis counting_axis(const std::string& label, size_t n) {
  PlotAxis axis{.label = label, .low = 1, .high = std::max(2.0, static_cast<double>(n))};
  if (n <= 12)
    for (const double i : counting(n)) axis.ticks.emplace_back(i, short_number(i));
  return axis;
}

/// Plots a metric's figure of each batch.
PlotSeries batch_series(const Json& batches, const MetricFigures& metric, const char* figure) {
  PlotSeries series{.name = metric.name, .x = counting(batches.size())};
  for (const Json& batch : batches) series.y.push_back(or_none(part(batch, {"metrics", metric.name.c_str(), figure})));
  return series;
}

bool has_values(const PlotSeries& series) {
  return std::any_of(series.y.begin(), series.y.end(), [](double y) { return std::isfinite(y); });
}

PlotFrame share_frame(const std::string& title, const std::string& subtitle, size_t batches) {
  return {.title = title,
          .subtitle = subtitle,
          .x = counting_axis("batches edited", batches),
          .y = {.label = "share of prompts, %", .numbers = AxisNumbers::kPercent, .high = 1}};
}

std::string retention_plot(const EditView& view, const Json& batches) {
  std::vector<PlotSeries> series;
  for (const MetricFigures& metric : headline_metrics(view.metrics))
    if (PlotSeries one = batch_series(batches, metric, "first_batch"); has_values(one))
      series.push_back(std::move(one));
  return series.empty() ? ""
                        : line_plot(share_frame("Retention", "the first batch's requests", batches.size()), series);
}

std::string both_views_plot(const EditView& view, const Json& batches) {
  std::vector<PlotSeries> series;
  size_t color = 0;
  for (const MetricFigures& metric : headline_metrics(view.metrics)) {
    PlotSeries right_after = batch_series(batches, metric, "right_after"),
               after = batch_series(batches, metric, "after_all");
    right_after.color = after.color = color++;
    after.name += ", after all";
    after.look = SeriesLook::kDashed;
    if (has_values(right_after)) series.push_back(std::move(right_after));
    if (has_values(after)) series.push_back(std::move(after));
  }
  PlotFrame frame =
      share_frame("Each batch's own requests", "right behind the batch, and after all batches", batches.size());
  frame.x.label = "batch";
  return series.empty() ? "" : line_plot(frame, series);
}

/// "layers.1 down_proj" of "model.layers.1.mlp.down_proj.weight".
std::string weight_label(const std::string& name) {
  const std::vector<std::string> parts = split(name, '.');
  const auto layers = std::find(parts.begin(), parts.end(), "layers");
  if (layers == parts.end() || parts.end() - layers < 4) return name;
  return cat("layer ", *(layers + 1), " ", *(parts.end() - 2));
}

std::string growth_plot(const Json& batches) {
  std::map<std::string, PlotSeries> by_weight;
  std::vector<std::string> names;  // in the file's order
  for (size_t i = 0; i < batches.size(); ++i) {
    const Json& growth = part(batches[i], {"growth"});
    if (!growth.is_object()) continue;
    for (const auto& [name, size] : growth.items()) {
      if (!by_weight.contains(name)) names.push_back(name);
      PlotSeries& series = by_weight[name];
      series.name = weight_label(name);
      series.x.push_back(static_cast<double>(i + 1));
      series.y.push_back(or_none(size));
    }
  }
  std::vector<PlotSeries> series;
  for (const std::string& name : names) series.push_back(std::move(by_weight[name]));
  if (series.empty()) return "";
  return line_plot({.title = "Growth of the weights",
                    .subtitle = "norm of a weight's whole change by its own norm",
                    .x = counting_axis("batches edited", batches.size()),
                    .y = {.label = "%", .numbers = AxisNumbers::kPercent, .low = 0}},
                   series);
}

/// Returns the losses by step of each request that has some.
std::vector<std::vector<double>> losses_of(const Json& report) {
  std::vector<std::vector<double>> all;
  for (const Json& request : part(report, {"requests"})) {
    std::vector<double> losses;
    for (const Json& loss : part(request, {"value", "losses"}))
      if (const auto number = number_of(loss)) losses.push_back(*number);
    if (!losses.empty()) all.push_back(std::move(losses));
  }
  return all;
}

/// Interpolates between the neighbours in order; `sorted` is not empty.
double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

struct LossCurve {
  PlotSeries quartiles{.name = "median and quartiles"},
      tail{.name = "95 % of the requests are below", .look = SeriesLook::kDashed};
  PlotSeries running{.name = "requests under way"};
};

LossCurve loss_curve(const std::vector<std::vector<double>>& all) {
  size_t steps = 0;
  for (const std::vector<double>& losses : all) steps = std::max(steps, losses.size());
  LossCurve curve;
  for (size_t step = 0; step < steps; ++step) {
    std::vector<double> at_step;
    double running = 0;
    for (const std::vector<double>& losses : all) {
      at_step.push_back(losses[std::min(step, losses.size() - 1)]);
      if (step < losses.size()) ++running;
    }
    std::sort(at_step.begin(), at_step.end());
    const double x = static_cast<double>(step + 1);
    for (PlotSeries* series : {&curve.quartiles, &curve.tail, &curve.running}) series->x.push_back(x);
    curve.quartiles.low.push_back(quantile(at_step, 0.25));
    curve.quartiles.y.push_back(quantile(at_step, 0.5));
    curve.quartiles.high.push_back(quantile(at_step, 0.75));
    curve.tail.y.push_back(quantile(at_step, 0.95));
    curve.running.y.push_back(running / static_cast<double>(all.size()));
  }
  return curve;
}

}  // namespace

Section stream_section(const EditView& view) {
  const Json& batches = part(view.report, {"batches"});
  if (!batches.is_array() || batches.size() < 2) return {};
  std::vector<std::pair<std::string, std::string>> plots;
  for (std::string plot : {retention_plot(view, batches), both_views_plot(view, batches), growth_plot(batches)})
    if (!plot.empty()) plots.emplace_back(std::move(plot), "");
  if (plots.empty()) return {};
  const double each = or_none(part(view.report, {"schedule", "batch"}));
  return {"stream", "The stream",
          cat(count_text(batches.size()), " batches, one behind the other",
              std::isfinite(each) ? cat(", ", counted(static_cast<size_t>(each), "request"), " each") : "",
              ". Of each group of metrics the first one is drawn."),
          figures(plots)};
}

Section losses_section(const EditView& view) {
  const std::vector<std::vector<double>> all = losses_of(view.report);
  if (all.empty()) return {};
  const LossCurve curve = loss_curve(all);
  const auto& low = curve.quartiles.low;
  const double least = *std::min_element(low.begin(), low.end());
  const double most = *std::max_element(curve.tail.y.begin(), curve.tail.y.end());
  const AxisScale scale = least > 0 && most / least > 20 ? AxisScale::kLogarithmic : AxisScale::kLinear;
  const size_t steps = curve.quartiles.x.size();
  const PlotFrame losses{
      .title = "Loss by step",
      .subtitle = cat(counted(all.size(), "request"), ": median, quartiles, 95th percentile"),
      .x = counting_axis("step", steps),
      .y = {.label = scale == AxisScale::kLogarithmic ? "total loss, logarithmic" : "total loss", .scale = scale}};
  const PlotFrame running{.title = "Requests under way",
                          .subtitle = "those that are not below the stop loss yet",
                          .x = counting_axis("step", steps),
                          .y = {.label = "% of the requests", .numbers = AxisNumbers::kPercent, .low = 0, .high = 1}};
  const auto subset = number_of(part(view.report, {"values", "contexts_per_step"}));
  std::string lead =
      "How far the optimisation of the requests' values came. A request that is finished keeps its last loss.";
  if (subset && *subset > 0)
    lead += cat(" Each step saw ", short_number(*subset), " of ", part(view.report, {"contexts"}).size(),
                " contexts, the next one others: neighbouring losses are not of the same contexts.");
  return {"losses", "Value optimisation", lead,
          figures({{line_plot(losses, std::vector{curve.quartiles, curve.tail}), ""},
                   {line_plot(running, std::vector{curve.running}), ""}})};
}

Section cost_section(const EditView& view) {
  std::vector<PlotBar> times, peaks;
  const Json &seconds = part(view.report, {"seconds"}), &stages = part(view.report, {"stage_peak_bytes"});
  if (seconds.is_object())
    for (const auto& [stage, value] : seconds.items()) {
      const double number = number_of(value).value_or(0);
      times.push_back({stage, number, seconds_text(number), 0});
    }
  std::map<std::string, size_t> colors;
  if (stages.is_object())
    for (const auto& [stage, bytes] : stages.items())
      for (const auto& [device, size] : peaks_of(bytes)) {
        const size_t color = colors.emplace(device, colors.size()).first->second;
        peaks.push_back({cat(stage, ", ", device), size, bytes_text(static_cast<uint64_t>(size)), color});
      }
  std::vector<std::pair<std::string, std::string>> plots;
  if (!times.empty())
    plots.emplace_back(bar_plot({.title = "Time by stage",
                                 .subtitle = cat(seconds_text(total_seconds(view.report).value_or(0)), " in all"),
                                 .x = {},
                                 .y = {}},
                                times),
                       "");
  if (!peaks.empty())
    plots.emplace_back(bar_plot({.title = "Peak memory by stage",
                                 .subtitle = "CPU: resident, mapped files included; GPU: in tensors",
                                 .x = {},
                                 .y = {}},
                                peaks),
                       "");
  if (plots.empty()) return {};
  return {"cost", "Time and memory", "", figures(plots)};
}

}  // namespace lancet::page
