// `evaluate:`, `accept:` and `expect:` of a job.
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

/// A list of protocols, or a map with the list under `metrics` and their options beside it; paths are taken from
/// `base`. `model`: whose chat template it is where the job gives none.
EvaluationOptions parse_evaluation(ConfigSection& job, const std::filesystem::path& base,
                                   const std::filesystem::path& model, const JobTables& tables);

/// The figures under each label of `expect:`, of metrics that `evaluation` measures. `compared`: the labels of
/// `compare:`; empty: the job compares nothing, and any label will do.
std::vector<ExpectedFigures> parse_expected(ConfigSection& job, const std::vector<std::string>& compared,
                                            const EvaluationOptions& evaluation, const JobTables& tables);

/// Thresholds of metrics that `evaluation` measures.
MetricShares parse_accept(ConfigSection& job, const EvaluationOptions& evaluation, const JobTables& tables);

/// Adds a problem for a name under `key` that no protocol measures, or that is no share.
void check_metric(ConfigSection& section, std::string_view key, const std::string& name, const JobTables& tables);

}  // namespace lancet
