// One tensor in a file of Python's torch.save: a zip file with a pickle, which says what the tensor is, and a record of
// its bytes. A pickle is a program; this one is compared, word by word, with what torch.save writes for a tensor, and
// never run. Source of the format: PyTorch, torch/serialization.py and torch/_utils.py; Python, pickletools.py.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "lancet/checkpoint/safetensors.h"

namespace lancet {

class SavedTensor {
 public:
  /// Reads no number of it. Throws: CheckpointError "PATH: ..." when the file is damaged, holds anything but one
  /// tensor, or one whose numbers do not lie in it side by side.
  static SavedTensor open(const std::filesystem::path& path);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  /// The i-th along the first dimension.
  TensorView part(int64_t i) const;
  /// Reads all of it. Throws: CheckpointError when the bytes disagree with the file's CRC-32.
  void check_bytes() const;

 private:
  struct Record;

  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<const Record> record_;
  DType dtype_ = DType::kF32;
  std::vector<int64_t> shape_;
  uint64_t begin_ = 0;  // of the tensor, in the file
};

}  // namespace lancet
