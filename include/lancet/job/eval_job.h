// `lancet eval` and `lancet stats`: parts of an edit job on their own.
#pragma once

#include <string>
#include <vector>

#include "lancet/job/job_config.h"

namespace lancet {

struct EvalReport {
  std::vector<EditRequest> requests;
  Evaluation evaluation;
  std::string content_hash;
};

/// Measures the job's requests on the model as it is.
EvalReport run_eval_job(const JobConfig& job);
std::string to_json(const EvalReport& report, const JobConfig& job);

struct LayerStatistics {
  int64_t layer = 0;
  int64_t tokens = 0;
  double mean_diagonal = 0;  ///< trace(C) / n
  bool from_cache = false;
  std::filesystem::path file;
};

struct StatisticsReport {
  std::vector<LayerStatistics> layers;
  bool corpus_exhausted = false;
};

/// Collects what the job's editor needs into the cache.
StatisticsReport run_statistics_job(const JobConfig& job);
std::string to_json(const StatisticsReport& report);

}  // namespace lancet
