// Matrices that no edit changes. They stay quantised on their device and are unpacked one at a time when a pass
// computes with them. Defined in layer_weights.cpp.
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

/// Which matrices a loaded model keeps quantised: those matrices of its layers that are not edited and that either the
/// checkpoint has quantised or `quantiser` is to quantise.
struct QuantiseRule {
  std::vector<WeightId> edited = {};        ///< weights that are loaded in full precision, however they are stored
  std::optional<Quantiser> quantiser = {};  ///< quantiser for matrices that the checkpoint has in full precision

  /// Adds the ids that `edited` does not have yet.
  void add_edited(std::span<const WeightId> ids);
  /// Whether the rule applies to a weight: a matrix of attention or of an MLP that is not edited.
  bool covers(WeightId id) const;
  bool keeps_packed(const WeightSpec& spec) const {
    // keys of latent attention's heads lie turned there, and are unpacked
    return !spec.packed.empty() && spec.stored.layout != Layout::kLatentParts && covers(spec.id);
  }
  /// Whether the weight is quantised while it is loaded.
  bool quantises(const WeightSpec& spec) const {
    return quantiser.has_value() && spec.packed.empty() && covers(spec.id);
  }
  /// Returns a key of what makes the weight's numbers differ from the checkpoint's in the run's type; empty: nothing.
  /// Packed matrices have the same numbers as the unpacked ones, so they do not count.
  std::string key(const WeightSpec& spec) const;
  /// Returns such a key for all weights, for a checkpoint that has all of them in full precision.
  std::string key(const ModelConfig& config) const;
};

/// Rows of a packed matrix. The matrix's rows form `groups` groups of equal size; from each group the same number of
/// rows is taken, starting at row `begin` of the group.
struct QuantisedRows {
  PackedMatrix matrix;
  int64_t groups = 1;
  int64_t begin = 0;
  int64_t rows = 0;  ///< number of rows taken from all groups together

  /// Unpacks the rows into `out` [rows, columns] of a floating type, on the matrix's device.
  void unpack_into(const Tensor& out) const;
  /// Decodes `count` of the rows, from the place `first` on, to f32 [count, columns]. PackedMatrix::can_read_rows()
  /// must hold.
  void read_rows(int64_t first, int64_t count, float* out) const;
};

/// A weight [out, in] that consists of packed matrices: one, or one per expert. Copies share the matrices.
class QuantisedLinear {
 public:
  /// `axis`: the dimension along which the parts, all of one size, are concatenated.
  QuantisedLinear(std::vector<QuantisedRows> parts, int64_t axis) : parts_(std::move(parts)), axis_(axis) {}

  std::vector<int64_t> sizes() const;
  at::Device device() const { return parts_.front().matrix.device(); }

  /// Computes x W^T + bias: x [..., in] of a floating type on the same device -> [..., out] in x's type, with W in that
  /// type too; bias [out] may be undefined. Differentiable with respect to x only: the backward pass unpacks the matrix
  /// again, so that no unpacked copy is kept in between. Throws: std::logic_error for a bias that needs a gradient;
  /// NumericError when x's type may be too narrow for the largest weights.
  Tensor linear(const Tensor& x, const Tensor& bias) const;
  /// Computes linear() with the matrix of one expert.
  Tensor linear_of_expert(const Tensor& x, int64_t expert, const Tensor& bias = {}) const;

  /// Unpacks the whole weight to a floating type. Throws: NumericError as linear().
  Tensor unpack(at::ScalarType dtype) const;

 private:
  bool can_read_rows() const;
  Tensor few_rows_linear(const Tensor& x, const Tensor& bias) const;

  std::vector<QuantisedRows> parts_;
  int64_t axis_;
};

}  // namespace lancet
