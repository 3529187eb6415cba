// Reads the edits in an output's folder, written by this version or an earlier one.
#pragma once

#include <filesystem>

#include "lancet/edit_history/edit_history.h"

namespace lancet {

/// Returns whether the folder has edits/, or state/ as earlier versions wrote it.
bool has_edits(const std::filesystem::path& output);

/// Loads the edits. Throws: CheckpointError for damaged files, and if state/ does not belong to the requests.jsonl
/// beside it. The edits of state/ are one batch, in which single edits cannot be told apart.
EditHistory load_edits(const std::filesystem::path& output, const ModelConfig& config);

}  // namespace lancet
