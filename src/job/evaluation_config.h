// Parses `evaluate:`, `accept:` and `expect:` of a job.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/job/job_config.h"
#include "lancet/job/job_tables.h"
#include "lancet/spec/evaluation_options.h"

namespace lancet {

/// Parses a list of protocols, or a map with the list under `metrics` and options beside it. Paths are relative to
/// `base`. `model`: its chat template is used if the job gives none.
EvaluationOptions parse_evaluation(ConfigSection& job, const std::filesystem::path& base,
                                   const std::filesystem::path& model, const JobTables& tables);

/// Returns the figures under each label of `expect:`, for metrics that `evaluation` measures. `compared`: the labels of
/// `compare:`; if empty, the job compares nothing, and any label is accepted.
std::vector<ExpectedFigures> parse_expected(ConfigSection& job, const std::vector<std::string>& compared,
                                            const EvaluationOptions& evaluation, const JobTables& tables);

/// Returns the thresholds of metrics that `evaluation` measures.
MetricShares parse_accept(ConfigSection& job, const EvaluationOptions& evaluation, const JobTables& tables);

/// Adds a problem if no protocol measures the metric `name` under `key`, or if the metric is not a share.
void check_metric(ConfigSection& section, std::string_view key, const std::string& name, const JobTables& tables);

}  // namespace lancet
