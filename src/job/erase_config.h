// Parses `erase:` of a job.
#pragma once

#include <filesystem>

#include "lancet/job/job_config.h"

namespace lancet {

/// Paths are relative to `base`.
EraseOptions parse_erase(ConfigSection& job, const std::filesystem::path& base);

/// Adds a problem for each section or key of the job that has no meaning for an erasure.
void refuse_in_erasure(ConfigSection& job);

}  // namespace lancet
