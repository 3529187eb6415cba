// Where outputs may lie: what a job that replaces a folder must not delete.
#pragma once

#include <filesystem>

#include "lancet/io/output_folder.h"

namespace lancet {

/// The output must not be the model, lie in it, or hold it: replacing it would delete the base. Throws: ConfigError.
void check_apart(const std::filesystem::path& output, const std::filesystem::path& model);

/// `--out` of a command whose outputs are of that kind. Throws: ConfigError for one that is there and may not be
/// replaced, or of which not all is lancet's.
void check_new_output(const std::filesystem::path& out, IfExists if_exists, const OutputKind& kind);

/// The statistics cache must not lie in a folder that is replaced or goes away. Throws: ConfigError.
void check_cache_outside(const std::filesystem::path& cache, const std::filesystem::path& folder);

}  // namespace lancet
