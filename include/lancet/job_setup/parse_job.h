// A job with the methods and the metrics that this program has.
#pragma once

#include <filesystem>
#include <string>

#include "lancet/core/config_tree.h"
#include "lancet/job/job_config.h"
#include "lancet/job/job_tables.h"

namespace lancet {

/// Those of editors/registry.h and of eval/protocol.h.
const JobTables& job_tables();

/// parse_job() with these.
JobConfig parse_job(const ConfigTree& tree, const std::filesystem::path& base, const std::string& source,
                    JobPurpose purpose);

}  // namespace lancet
