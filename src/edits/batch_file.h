// What a batch did, as a file.
#pragma once

#include <filesystem>
#include <string>

#include "lancet/edits/edit_history.h"
#include "lancet/models/tensor_io.h"

namespace lancet {

/// A sealed file: the changes (deltas/named_changes.h) under "changes/", of each solved system "systems/0/keys",
/// "residuals" where they are not the change's left factor, "inverse_gram"; the state's step under "appended/" and
/// "replaced/"; facts: format lancet-edits-data-1, systems (JSON), edits.
class BatchFile {
 public:
  BatchFile(const EditedBatch& batch, const ModelConfig& config);

  std::string hash() const;
  void write(const std::filesystem::path& path) const;

 private:
  NamedTensors tensors_;
  Metadata facts_;
};

/// Throws: CheckpointError when the file is damaged, is not the one of that hash, or none of this model's.
EditedBatch read_batch_file(const std::filesystem::path& path, const std::string& hash, const ModelConfig& config);

}  // namespace lancet
