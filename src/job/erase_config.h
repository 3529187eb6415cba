// `erase:` of a job.
#pragma once

#include <filesystem>

#include "lancet/job/job_config.h"

namespace lancet {

/// Paths are taken from `base`.
EraseOptions parse_erase(ConfigSection& job, const std::filesystem::path& base);

/// Adds a problem for each section or key of the job that an erasure has no meaning for.
void refuse_in_erasure(ConfigSection& job);

}  // namespace lancet
