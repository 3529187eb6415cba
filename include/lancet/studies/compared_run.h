// One run of a compared method, read from the report that the run left. It gives a row of the table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lancet/outcome/edit_verdicts.h"
#include "lancet/pages/report_page.h"
#include "lancet/runtime/memory.h"

namespace lancet {

/// Means by metric, in the order of the report; nullopt: n/a.
using MetricMeans = std::vector<std::pair<std::string, std::optional<double>>>;
/// Returns the metric's mean; nullopt: n/a, or not measured.
std::optional<double> mean_of(const MetricMeans& means, std::string_view metric);

struct ComparedRun {
  uint64_t seed = 0;
  RunDocument document;  ///< its report.json and its job
  MetricMeans after;
  MetricMeans right_after;  ///< empty: nothing was measured between batches
  MetricMeans side_effects;
  SuccessCount success;
  std::vector<std::string> unmet;     ///< thresholds of `accept:` that were missed
  std::vector<std::string> warnings;  ///< warnings of this run only, without those of the requests
  double seconds_per_edit = 0;
  std::vector<std::pair<std::string, double>> seconds;  ///< seconds by stage, in order
  PeakBytes peaks;
  size_t batches = 0;
};

/// Reads the run from its report.json. `at_odds`: warnings about the requests, which are not warnings of the run.
/// Throws: ConfigError when the JSON is not a report of this version of lancet.
ComparedRun read_compared_run(RunDocument document, std::span<const std::string> at_odds);

/// A figure over several runs.
struct SeedFigure {
  std::optional<double> mean = {};       ///< nullopt: n/a in some run
  std::optional<double> deviation = {};  ///< sample standard deviation; nullopt if there is only one run
};
SeedFigure figure_of(std::span<const double> values);
/// Returns the metric's figure over all runs.
SeedFigure figure_of(std::span<const ComparedRun> runs, MetricMeans ComparedRun::*means, std::string_view metric);

}  // namespace lancet
