// `requests:` of a job, and other files of requests that it names. Defined in job_config.cpp.
#pragma once

#include <filesystem>

#include "lancet/job/job_config.h"

namespace lancet {

/// `skip`, `limit` and `format` of a file.
RequestFileOptions parse_file_options(ConfigSection& section);

/// `requests` of the job, or of a section of it; paths are taken from `base`.
RequestSource parse_request_source(ConfigSection& job, const std::filesystem::path& base,
                                   TargetNeed target = TargetNeed::kRequired);

}  // namespace lancet
