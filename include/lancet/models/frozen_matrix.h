// Matrices that no edit changes: kept quantised on their device, and unpacked one at a time when a pass computes with
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lancet/models/weight_table.h"
#include "lancet/quant/packed_matrix.h"
#include "lancet/quant/quantise.h"

namespace lancet {

/// Which matrices a loaded model keeps quantised: those of its layers that are not edited, where the checkpoint has
/// them so, or where `quantiser` says so.
struct FreezeRule {
  std::vector<WeightId> edited = {};        ///< in full precision
  std::optional<Quantiser> quantiser = {};  ///< of matrices that the checkpoint has in full precision

  /// Whether a weight stays quantised where it is, or is to be.
  bool freezes(WeightId id) const;
  bool keeps_packed(const WeightSpec& spec) const { return !spec.packed.empty() && freezes(spec.id); }
  /// Quantised while they are loaded.
  bool quantises(const WeightSpec& spec) const {
    return quantiser.has_value() && spec.packed.empty() && freezes(spec.id);
  }
  /// What a layer's weights are besides the checkpoint's, in the run's type; empty: nothing else.
  std::string key(const WeightSpec& spec) const;
  /// The same of the whole model.
  std::string key(const ModelConfig& config) const;
};

/// Rows of a packed matrix: so many groups of equal size, and of each group as many, from row `begin` of it on.
struct FrozenRows {
  PackedMatrix matrix;
  int64_t groups = 1;
  int64_t begin = 0;
  int64_t rows = 0;  ///< in all groups

  /// [rows, columns] of a floating type.
  Tensor unpack(at::ScalarType dtype) const;
};

/// A weight [out, in] of packed matrices: one, or one for each expert.
class FrozenMatrix {
 public:
  /// `axis`: along which the parts lie one behind the other.
  FrozenMatrix(std::vector<FrozenRows> parts, int64_t axis) : parts_(std::move(parts)), axis_(axis) {}

  std::vector<int64_t> sizes() const;
  at::Device device() const { return parts_.front().matrix.device(); }

  /// x [..., in] of a floating type, on the same device -> x W^T + bias [..., out] in x's type, W in that type too;
  /// bias [out] may be undefined, and gets no gradient. Differentiable in x: the backward pass unpacks the matrix
  /// again, so that none is held in between.
  Tensor linear(const Tensor& x, const Tensor& bias) const;
  /// The same with one expert's matrix alone.
  Tensor linear_of_expert(const Tensor& x, int64_t expert) const;

  /// The whole weight, in a floating type.
  Tensor unpack(at::ScalarType dtype) const;

 private:
  std::vector<FrozenRows> parts_;
  int64_t axis_;
};

}  // namespace lancet
