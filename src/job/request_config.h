// `requests:` of a job, and other files of requests that it names.
#pragma once

#include <filesystem>

#include "lancet/job/job_config.h"

namespace lancet {

/// `skip`, `limit` and `format` of a file.
RequestFileOptions parse_file_options(ConfigSection& section);

/// Whether requests that stand in the job need a target.
enum class Targets { kRequired, kOptional };

/// `requests` of the job, or of a section of it; paths are taken from `base`.
RequestSource parse_request_source(ConfigSection& job, const std::filesystem::path& base,
                                   Targets targets = Targets::kRequired);

}  // namespace lancet
