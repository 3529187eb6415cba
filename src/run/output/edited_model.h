// An edited model as files: its weights, and its edits as data.
#pragma once

#include <filesystem>
#include <span>

#include "lancet/edits/edit_history.h"
#include "lancet/models/model_files.h"
#include "output_form.h"

namespace lancet {

/// Into `folder`, which exists and is empty: what the form writes of the weights; edits/ (EditHistory::write);
/// requests.jsonl. Throws: CheckpointError when the disk refuses.
void write_edited_model(const ModelFiles& files, const OutputForm& form,
                        std::span<const WeightTransaction::Entry> entries, const EditHistory& history,
                        const std::filesystem::path& folder, HistoryParts parts);

/// The last two alone.
void write_edits(const ModelFiles& files, const EditHistory& history, const std::filesystem::path& folder,
                 const HistoryWriting& options);

}  // namespace lancet
