// The edits in an output's folder, of this version or an earlier one.
#pragma once

#include <filesystem>

#include "lancet/edit_history/edit_history.h"

namespace lancet {

/// Whether the folder has edits/, or state/ as earlier versions wrote it.
bool has_edits(const std::filesystem::path& output);

/// Throws: CheckpointError for what is damaged; state/ also when it is not of the requests.jsonl beside it. Its edits
/// are one batch, of which single ones cannot be told apart.
EditHistory load_edits(const std::filesystem::path& output, const ModelConfig& config);

}  // namespace lancet
