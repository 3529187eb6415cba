// What a batch did, as two files: its changes, and what a next batch or an undo needs besides.
#pragma once

#include <filesystem>
#include <string>

#include "lancet/edit_history/edit_history.h"
#include "lancet/models/tensor_io.h"

namespace lancet {

/// A sealed file that is not written yet.
struct UnwrittenFile {
  SealedFormat format = {};
  NamedTensors tensors = {};
  Metadata facts = {};

  std::string hash() const { return hash_of_tensors(format, tensors, facts); }
  void write(const std::filesystem::path& path) const { write_tensors(path, format, tensors, facts); }
};

/// The changes (deltas/named_changes.h); format lancet-edit-changes-1.
UnwrittenFile changes_file(const std::vector<WeightChanges>& changes, const ModelConfig& config);

/// Makes the file of what a batch was solved from: each solved system's "systems/0/keys", "residuals" where they are
/// not the change's left factor, "inverse_gram"; the state's step under "appended/" and "replaced/"; facts: format
/// lancet-edit-solved-1, systems (JSON), edits.
UnwrittenFile solved_file(const EditedBatch& batch, const ModelConfig& config);

/// Throw: CheckpointError when the file is damaged, is not the one of that hash, or none of this model's.
std::vector<WeightChanges> read_changes_file(const std::filesystem::path& path, const std::string& hash,
                                             const ModelConfig& config);
/// `batch` has its changes.
void read_solved_file(const std::filesystem::path& path, const std::string& hash, const ModelConfig& config,
                      EditedBatch& batch);

}  // namespace lancet
