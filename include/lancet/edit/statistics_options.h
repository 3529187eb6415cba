// `statistics:` of a job: which text the second moments of MLP keys are taken over, and where they are kept.
#pragma once

#include <cstdint>
#include <filesystem>

#include "lancet/core/config_section.h"

namespace lancet {

struct StatisticsOptions {
  std::filesystem::path corpus;    ///< text (a document per line) or .jsonl ("text")
  int64_t tokens = 1'000'000;      ///< budget, BOS tokens included
  int64_t document_tokens = 2048;  ///< longer documents are cut; never more than the model's positions
  double ridge = 0.0;              ///< added to C, relative to trace(C) / n, before it is factored
  double save_every_s = 30.0;   ///< between saves of a pass under way, for a killed one to go on from; 0: every chunk
  std::filesystem::path cache;  ///< folder of cached covariances
};

/// `statistics:` of a job; relative paths are taken from `base`.
StatisticsOptions parse_statistics_options(ConfigSection section, const std::filesystem::path& base);

}  // namespace lancet
