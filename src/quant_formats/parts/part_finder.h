// Collects a matrix's tensors, and what is wrong with them.
#pragma once

#include <initializer_list>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/quant_formats/packed_spec.h"

namespace lancet {

/// What a tensor should be like.
struct ExpectedPart {
  PartRole role;
  std::string tensor;
  std::vector<DType> types;
  std::vector<std::vector<int64_t>> shapes;  ///< any of them; empty: whatever shape it has
};

/// Types of scales in formats whose programs compute in the type that scales have.
inline const std::vector<DType> kScaleTypes{DType::kF16, DType::kBF16, DType::kF32};

class PartFinder {
 public:
  PartFinder(const Checkpoint& checkpoint, PackedSpec& spec, std::vector<std::string>& problems);

  /// The tensor, which becomes a part; nullptr: it is missing or not as expected, which is a problem then.
  const TensorInfo* need(const ExpectedPart& expected);
  /// Takes a part that may be missing.
  const TensorInfo* take(const ExpectedPart& expected);
  /// Zero points where there should be none: older files have them, all 0, which is a problem otherwise.
  void take_idle_zeros(const std::string& tensor);
  /// Which group each column belongs to, where the file says it. `why`: what says that it has to.
  void take_order(const std::string& tensor, std::string_view why);
  /// Whether `size` numbers of the code's bits fill words of 32 bits; a problem otherwise. `what`: "columns".
  bool fills_words(int64_t size, std::string_view what);
  void problem(std::string_view tensor, std::string_view what);
  /// Bytes of a small tensor that `need` or `take` gave. Throws: CheckpointError when the file cannot be read.
  std::string bytes(const TensorInfo& tensor) const;

  bool contains(std::string_view tensor) const { return checkpoint_.contains(tensor); }
  const PackedSpec& spec() const { return spec_; }
  /// The weight's name with its module's alone: "model.layers.3.mlp.down_proj".
  std::string module() const;
  /// No problem has been found.
  bool is_whole() const { return problems_.size() == before_; }

 private:
  const Checkpoint& checkpoint_;
  PackedSpec& spec_;
  std::vector<std::string>& problems_;
  size_t before_;
};

}  // namespace lancet
