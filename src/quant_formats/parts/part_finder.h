// Collects a matrix's tensors, and the problems with them.
#pragma once

#include <initializer_list>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/quant_formats/packed_spec.h"

namespace lancet {

/// What a tensor should look like.
struct ExpectedPart {
  PartRole role;
  std::string tensor;
  std::vector<DType> types;
  std::vector<std::vector<int64_t>> shapes;  ///< the allowed shapes; empty: any shape
};

/// Types of scales in formats whose programs compute in the type of the scales.
inline const std::vector<DType> kScaleTypes{DType::kF16, DType::kBF16, DType::kF32};

class PartFinder {
 public:
  PartFinder(const Checkpoint& checkpoint, PackedSpec& spec, std::vector<std::string>& problems);

  /// Returns the tensor, and adds it as a part. Returns nullptr and adds a problem if it is missing or not as expected.
  const TensorInfo* need(const ExpectedPart& expected);
  /// Adds a part that may be missing.
  const TensorInfo* take(const ExpectedPart& expected);
  /// Accepts unnecessary zero points, which older files have, if all of them are 0. Adds a problem otherwise.
  void take_idle_zeros(const std::string& tensor);
  /// Reads which group each column belongs to, if the file has it. `why`: what says that it must have it.
  void take_order(const std::string& tensor, std::string_view why);
  /// Whether `size` numbers of the code's bits fill whole words of 32 bits. Adds a problem otherwise. `what`:
  /// "columns".
  bool fills_words(int64_t size, std::string_view what);
  void problem(std::string_view tensor, std::string_view what);
  /// Returns the bytes of a small tensor that need() or take() returned. Throws: CheckpointError if the file cannot be
  /// read.
  std::string bytes(const TensorInfo& tensor) const;

  bool contains(std::string_view tensor) const { return checkpoint_.contains(tensor); }
  const PackedSpec& spec() const { return spec_; }
  /// Returns the name of the weight's module: "model.layers.3.mlp.down_proj".
  std::string module() const;
  /// Whether no problem has been found.
  bool is_whole() const { return problems_.size() == before_; }

 private:
  const Checkpoint& checkpoint_;
  PackedSpec& spec_;
  std::vector<std::string>& problems_;
  size_t before_;
};

}  // namespace lancet
