// Parses `requests:` of a job, and other files of requests that a job names. Defined in job_config.cpp.
#pragma once

#include <filesystem>

#include "lancet/job/job_config.h"

namespace lancet {

/// Parses `skip`, `limit` and `format` of a file.
RequestFileOptions parse_file_options(ConfigSection& section);

/// Parses `requests` of the job, or of a section of it. Paths are relative to `base`.
RequestSource parse_request_source(ConfigSection& job, const std::filesystem::path& base,
                                   TargetNeed target = TargetNeed::kRequired);

}  // namespace lancet
