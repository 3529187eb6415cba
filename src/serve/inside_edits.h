// The edits that were in the weights of the served model from the start, if its folder is an output of `lancet edit`.
#pragma once

#include <filesystem>

#include "desk_json.h"

namespace lancet {

/// Returns {"edits": rows as of edits_json(), the latest first, "base": the folder of the unedited model, "problem":
/// why they cannot be listed}; null if the folder has none. If the journal is damaged there is a warning, and the model
/// is served without it.
Json inside_edits(const std::filesystem::path& model);

}  // namespace lancet
