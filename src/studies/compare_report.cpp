// Writes compare.json.
#include "lancet/core/version.h"
#include "lancet/outcome/report_json.h"
#include "lancet/studies/compare_job.h"

namespace lancet {
namespace {

/// Returns the figures of the unedited model, in the order of `metrics`.
Json before_json(std::span<const MetricRow> metrics, const Tallies& tallies) {
  Json json = Json::object();
  for (const MetricRow& row : metrics)
    if (const auto tally = tallies.find(row.name); tally != tallies.end()) json[row.name] = mean_json(tally->second);
  return json;
}

enum class Figure { kMean, kDeviation };

/// Returns figures over all runs, for each metric that the runs have.
Json figures_of(std::span<const ComparedRun> runs, MetricMeans ComparedRun::*means, Figure which = Figure::kMean) {
  Json json = Json::object();
  for (const auto& [name, unread] : runs.front().*means) {
    const SeedFigure figure = figure_of(runs, means, name);
    json[name] = number_json(which == Figure::kMean ? figure.mean : figure.deviation);
  }
  return json;
}

Json success_json(const SuccessCount& count) {
  return count.measured > 0 ? Json{{"edits", count.successes}, {"of", count.measured}} : Json(nullptr);
}

/// Counts the edits of all runs together.
Json success_json(std::span<const ComparedRun> runs) {
  SuccessCount all;
  for (const ComparedRun& run : runs) {
    all.successes += run.success.successes;
    all.measured += run.success.measured;
  }
  return success_json(all);
}

Json seconds_json(const ComparedRun& run) {
  Json seconds = Json::object();
  for (const auto& [stage, cost] : run.seconds) seconds[stage] = cost;
  return seconds;
}

/// Returns the mean over the runs, for each stage.
Json seconds_json(std::span<const ComparedRun> runs) {
  Json seconds = seconds_json(runs.front());
  for (auto& [stage, mean] : seconds.items()) {
    std::vector<double> costs;
    for (const ComparedRun& run : runs)
      for (const auto& [name, cost] : run.seconds)
        if (name == stage) costs.push_back(cost);
    mean = *figure_of(costs).mean;
  }
  return seconds;
}

PeakBytes highest_peaks(std::span<const ComparedRun> runs) {
  PeakBytes peaks;
  for (const ComparedRun& run : runs) raise_to(peaks, run.peaks);
  return peaks;
}

/// Returns the single runs, if there are several seeds.
Json runs_json(const CompareConfig& config, const ComparedMethod& method, std::span<const ComparedRun> all) {
  Json runs = Json::array();
  for (const ComparedRun& run : all)
    runs.push_back({{"seed", run.seed},
                    {"after", figures_of({&run, 1}, &ComparedRun::after)},
                    {"success", success_json(run.success)},
                    {"unmet", run.unmet},
                    {"seconds_per_edit", run.seconds_per_edit},
                    {"report", run_folder(config, method, run.seed) + "/report.json"}});
  return runs;
}

/// Adds the figures that the runs have together, in the order of their seeds.
void add_figures(Json& json, std::span<const ComparedRun> runs) {
  const ComparedRun& first = runs.front();
  json["after"] = figures_of(runs, &ComparedRun::after);
  json["right_after"] = first.right_after.empty() ? Json(nullptr) : figures_of(runs, &ComparedRun::right_after);
  if (!first.side_effects.empty()) json["side_effects"] = figures_of(runs, &ComparedRun::side_effects);
  json["success"] = success_json(runs);
  std::vector<std::string> unmet;
  std::vector<double> seconds_per_edit;
  for (const ComparedRun& run : runs) {
    unmet.insert(unmet.end(), run.unmet.begin(), run.unmet.end());
    seconds_per_edit.push_back(run.seconds_per_edit);
  }
  json["unmet"] = unmet;
  json["seconds_per_edit"] = number_json(figure_of(seconds_per_edit).mean);
  json["seconds"] = seconds_json(runs);
  json["peak_bytes"] = bytes_json(highest_peaks(runs));
}

Json result_json(const MethodResult& result, const CompareConfig& config, const ComparedMethod& method) {
  const bool is_done = result.error.empty();
  Json json = {{"label", method.label},
               {"method", method.job().method},
               {"status", is_done ? "done" : "failed"},
               {"error", is_done ? Json(nullptr) : Json(result.error)}};
  if (!is_done) return json;
  add_figures(json, result.runs);
  if (config.seeds() > 1) {
    json["deviation"] = figures_of(result.runs, &ComparedRun::after, Figure::kDeviation);
    json["runs"] = runs_json(config, method, result.runs);
  } else {
    json["report"] = run_folder(config, method, result.runs.front().seed) + "/report.json";
  }
  return json;
}

Json published_json(const CompareReport& report, const CompareConfig& config) {
  Json published = Json::array();
  for (const ExpectedFigure& each : beside_published(report, config))
    published.push_back({{"label", each.label},
                         {"metric", each.metric},
                         {"published", each.published},
                         {"here", number_json(each.here)}});
  return published;
}

}  // namespace

std::string to_json(const CompareReport& report, const CompareConfig& config) {
  const JobConfig& job = config.first();
  Json methods = Json::array(), protocols = Json::object(), seeds = Json::array();
  for (size_t i = 0; i < report.methods.size(); ++i)
    methods.push_back(result_json(report.methods[i], config, config.methods[i]));
  for (const MetricRow& row : report.before.metrics) protocols[row.name] = row.protocol;
  for (const MetricRow& row : report.before.side_effects.metrics) protocols[row.name] = row.protocol;
  for (const JobConfig& each : config.methods.front().jobs) seeds.push_back(each.run.seed);
  return dump_report({{"format", "lancet-compare-1"},
                      {"lancet", kVersion},
                      {"model", {{"folder", job.model.string()}, {"content_hash", report.base_hash}}},
                      {"requests", report.requests},
                      {"batch", job.schedule.largest_batch(report.requests)},
                      {"seeds", seeds},
                      {"protocols", protocols},
                      {"before", before_json(report.before.metrics, report.before.totals)},
                      {"methods", methods},
                      {"expected", published_json(report, config)}});
}

}  // namespace lancet
