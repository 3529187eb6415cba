// What an edit checks: before any weight is read, also by a rehearsal for the whole job, and of what it measured.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lancet/io/output_folder.h"
#include "lancet/plan/model_session.h"

namespace lancet {

/// Everything about the requests that can fail without a model pass. Throws: ConfigError.
void check_requests(const ModelFiles& files, const std::vector<EditRequest>& requests, const Editor& editor);

/// refuse_long_requests() by the model's own positions. Throws: ConfigError.
void check_lengths(const ModelFiles& files, const std::vector<EditRequest>& requests);

/// The output must not be the model, lie in it, or hold it: replacing it would delete the base. Throws: ConfigError.
void check_apart(const std::filesystem::path& output, const std::filesystem::path& model);

/// `--out` of a command whose outputs are of that kind. Throws: ConfigError for one that is there and may not be
/// replaced, or of which not all is lancet's.
void check_new_output(const std::filesystem::path& out, IfExists if_exists, const OutputKind& kind);

/// The statistics cache must not lie in a folder that is replaced or goes away. Throws: ConfigError.
void check_cache_outside(const std::filesystem::path& cache, const std::filesystem::path& folder);

/// The job's `accept:` thresholds that were missed, a line each.
std::vector<std::string> unmet_thresholds(const JobConfig& job, const Evaluation& after);

}  // namespace lancet
