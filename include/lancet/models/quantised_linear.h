// Matrices that no edit changes: kept quantised on their device, and unpacked one at a time when a pass computes with
// them. Defined in layer_weights.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/models/weight_table.h"
#include "lancet/quant/packed_matrix.h"
#include "lancet/quant/quantise.h"

namespace lancet {

/// Which matrices a loaded model keeps quantised: those of its layers that are not edited, where the checkpoint has
/// them so, or where `quantiser` says so.
struct QuantiseRule {
  std::vector<WeightId> edited = {};        ///< loaded in full precision, however they are stored
  std::optional<Quantiser> quantiser = {};  ///< quantiser of matrices that the checkpoint has in full precision

  /// Adds those that are not among `edited` yet.
  void add_edited(std::span<const WeightId> ids);
  /// Whether a weight stays quantised where it is, or is to be: matrices of attention and of MLPs that are not edited.
  bool covers(WeightId id) const;
  bool keeps_packed(const WeightSpec& spec) const { return !spec.packed.empty() && covers(spec.id); }
  /// Quantised while they are loaded.
  bool quantises(const WeightSpec& spec) const {
    return quantiser.has_value() && spec.packed.empty() && covers(spec.id);
  }
  /// What makes the weight's numbers others than the checkpoint's in the run's type; empty: nothing. Packed matrices
  /// are no other numbers than the same ones unpacked.
  std::string key(const WeightSpec& spec) const;
  /// What makes the weights' numbers others, likewise, where the checkpoint has all of them in full precision.
  std::string key(const ModelConfig& config) const;
};

/// Rows of a packed matrix: its rows are `groups` groups of equal size, and of each the same number is taken, from the
/// group's row `begin` on.
struct QuantisedRows {
  PackedMatrix matrix;
  int64_t groups = 1;
  int64_t begin = 0;
  int64_t rows = 0;  ///< taken from all groups together

  /// Unpacks into `out` [rows, columns] of a floating type, on the matrix's device.
  void unpack_into(const Tensor& out) const;
};

/// A weight [out, in] of packed matrices: one, or one for each expert. Copies share them.
class QuantisedLinear {
 public:
  /// `axis`: along which the parts, all of one size, lie one after the other.
  QuantisedLinear(std::vector<QuantisedRows> parts, int64_t axis) : parts_(std::move(parts)), axis_(axis) {}

  std::vector<int64_t> sizes() const;
  at::Device device() const { return parts_.front().matrix.device(); }

  /// x [..., in] of a floating type, on the same device -> x W^T + bias [..., out] in x's type, W in that type too;
  /// bias [out] may be undefined. Differentiable in x alone: the backward pass unpacks the matrix again, so that none
  /// is held in between. Throws: std::logic_error for a bias that needs a gradient; NumericError when x's type cannot
  /// hold a weight as large as some may be.
  Tensor linear(const Tensor& x, const Tensor& bias) const;
  /// Computes linear() with one expert's matrix alone.
  Tensor linear_of_expert(const Tensor& x, int64_t expert, const Tensor& bias = {}) const;

  /// The whole weight, in a floating type. Throws: NumericError, as above.
  Tensor unpack(at::ScalarType dtype) const;

 private:
  std::vector<QuantisedRows> parts_;
  int64_t axis_;
};

}  // namespace lancet
