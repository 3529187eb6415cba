// Rotary position embedding: frequencies, tables of cosines and sines, and turning queries and keys by them.
#pragma once

#include "lancet/models/model_config.h"
#include "lancet/models/sequence_info.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

enum class RopePrecision : uint8_t { kF32, kF64 };

/// Frequencies [dim / 2], computed on the host. Undefined: nothing is turned.
struct RopeFrequencies {
  Tensor usual;
  Tensor beyond;  ///< frequencies of rows beyond the positions that the model was trained on; undefined: the usual ones

  RopeFrequencies to(at::Device device) const;
};
RopeFrequencies rope_frequencies(const RopeConfig& rope, RopePrecision precision);

/// [B, T, 1, dim] in the compute dtype; undefined: nothing is turned.
struct RotaryTable {
  Tensor cos;
  Tensor sin;
};

/// [dim / 2], or [B, 1, dim / 2] where rows differ, [1, T, dim / 2] where ragged rows do: a row that reaches beyond
/// original_max_positions takes the frequencies of long texts for all of its positions, as transformers does with the
/// row alone. Packed documents are one row: plan_packs() keeps long ones apart.
Tensor frequencies_of_rows(const RopeConfig& rope, const RopeFrequencies& frequencies, const SequenceInfo& sequence);

/// Returns the table on the frequencies' device.
RotaryTable rotary_table(const RopeConfig& rope, const RopeFrequencies& frequencies, const SequenceInfo& sequence,
                         at::ScalarType dtype);

/// x [B, T, heads, C], of which the first `rope.dim` numbers of each head are turned.
Tensor turned(const RopeConfig& rope, const Tensor& x_BTHC, const RotaryTable& table);

}  // namespace lancet
