#include "lancet/studies/compared_run.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/outcome/report_json.h"

namespace lancet {
namespace {

std::optional<double> optional_number(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

/// `figure`: "after" or "right_after" of each metric.
MetricMeans means_in(const Json& metrics, const char* figure) {
  MetricMeans means;
  for (const auto& [name, metric] : metrics.items()) means.emplace_back(name, optional_number(metric.at(figure)));
  return means;
}

MetricMeans right_after_in(const Json& metrics) {
  MetricMeans means = means_in(metrics, "right_after");
  const bool any = std::ranges::any_of(means, [](const auto& mean) { return mean.second.has_value(); });
  return any ? means : MetricMeans{};
}

void read_figures(const Json& report, ComparedRun& run) {
  run.seed = report.at("run").at("seed").get<uint64_t>();
  run.after = means_in(report.at("metrics"), "after");
  run.right_after = right_after_in(report.at("metrics"));
  run.side_effects = means_in(report.at("side_effects"), "after");
  run.success.successes = report.at("verdicts").at("success").get<size_t>();
  run.success.measured = report.at("verdicts").at("measured").get<size_t>();
  if (const Json& written = report.at("verdicts").at("written"); !written.is_null())
    run.success.written = written.get<size_t>();
  if (const Json& in_chat = report.at("verdicts").at("in_chat"); !in_chat.is_null())
    run.success.in_chat = in_chat.get<size_t>();
  run.unmet = report.at("unmet").get<std::vector<std::string>>();
  run.warnings = report.at("warnings").get<std::vector<std::string>>();
  double seconds = 0;
  for (const Json& batch : report.at("batches")) seconds += batch.at("seconds").get<double>();
  run.batches = report.at("batches").size();
  run.seconds_per_edit = seconds / static_cast<double>(report.at("requests").size());
  for (const auto& [stage, cost] : report.at("seconds").items()) run.seconds.emplace_back(stage, cost.get<double>());
  for (const auto& [device, bytes] : report.at("peak_bytes").items())
    run.peaks.emplace_back(device, bytes.get<int64_t>());
}

}  // namespace

ComparedRun read_compared_run(RunDocument document, std::span<const std::string> at_odds) {
  ComparedRun run;
  try {
    read_figures(parse_ordered_object(document.json), run);
  } catch (const JsonProblem& problem) {
    throw ConfigError(cat(document.label, ": report.json: ", problem.what()));
  } catch (const Json::exception& error) {
    throw ConfigError(cat(document.label, ": report.json: ", error.what()));
  }
  std::erase_if(run.warnings,
                [&](const std::string& warning) { return std::ranges::find(at_odds, warning) != at_odds.end(); });
  run.document = std::move(document);
  return run;
}

std::optional<double> mean_of(const MetricMeans& means, std::string_view metric) {
  const auto found = std::ranges::find(means, metric, &MetricMeans::value_type::first);
  return found == means.end() ? std::nullopt : found->second;
}

SeedFigure figure_of(std::span<const double> values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  for (const double value : values) squares += (value - sum / count) * (value - sum / count);
  SeedFigure figure{.mean = sum / count};
  if (values.size() > 1) figure.deviation = std::sqrt(squares / (count - 1));
  return figure;
}

SeedFigure figure_of(std::span<const ComparedRun> runs, MetricMeans ComparedRun::*means, std::string_view metric) {
  std::vector<double> values;
  for (const ComparedRun& run : runs) {
    const std::optional<double> mean = mean_of(run.*means, metric);
    if (!mean) return {};
    values.push_back(*mean);
  }
  return figure_of(values);
}

}  // namespace lancet
