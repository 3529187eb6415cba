// The edits that a served model's folder had in its weights already: those of an output of `lancet edit`.
#pragma once

#include <filesystem>

#include "desk_json.h"

namespace lancet {

/// {"edits": rows as of edits_json(), the latest first, "base": the folder of the unedited model, "problem": why they
/// cannot be told}. null: the folder has none. A journal that is damaged is warned of, and the model served without it.
Json inside_edits(const std::filesystem::path& model);

}  // namespace lancet
