// Edits as files beside the weights that they made.
#pragma once

#include <filesystem>

#include "lancet/edit_history/edit_history.h"
#include "lancet/models/model_files.h"

namespace lancet {

/// Writes edits/ (EditHistory::write) and requests.jsonl into `folder`, which exists. Throws: CheckpointError when the
/// disk refuses.
void write_edits(const ModelFiles& files, const EditHistory& history, const std::filesystem::path& folder,
                 const HistoryWriting& options);

}  // namespace lancet
