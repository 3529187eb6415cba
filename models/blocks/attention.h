// Attention of a decoder layer up to its output projection: projections, norms of heads, rotary embedding, windows and
// caps.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "lancet/models/hooks.h"
#include "lancet/models/model_config.h"
#include "lancet/models/sequence_info.h"
#include "lancet/runtime/tensor.h"
#include "layer_weights.h"
#include "mixer_rows.h"
#include "packed_attention.h"

namespace lancet {

// Rotary position embedding: frequencies, tables of cosines and sines, and the rotation of queries and keys.

enum class RopePrecision : uint8_t { kF32, kF64 };

/// Frequencies [dim / 2], computed on the host. Undefined: nothing is rotated.
struct RopeFrequencies {
  Tensor usual;
  Tensor beyond;  ///< frequencies for rows beyond the positions of the original training; undefined: the usual ones

  RopeFrequencies to(at::Device device) const;
};
RopeFrequencies rope_frequencies(const RopeConfig& rope, RopePrecision precision);

/// [B, T, 1, dim] in the compute dtype; undefined: nothing is rotated.
struct RotaryTable {
  Tensor cos;
  Tensor sin;
};

/// Returns [dim / 2], or [B, 1, dim / 2] if rows differ, or [1, T, dim / 2] if ragged rows do. A row that reaches
/// beyond original_max_positions uses the frequencies of long texts for all its positions, as transformers does for the
/// row alone. Packed documents are one row: plan_packs() keeps long ones separate.
Tensor frequencies_of_rows(const RopeConfig& rope, const RopeFrequencies& frequencies, const SequenceInfo& sequence);

/// Returns the table on the frequencies' device.
RotaryTable rotary_table(const RopeConfig& rope, const RopeFrequencies& frequencies, const SequenceInfo& sequence,
                         at::ScalarType dtype);

/// Returns x [B, T, heads, C] with the first `rope.dim` numbers of each head rotated.
Tensor turned(const RopeConfig& rope, const Tensor& x_BTHC, const RotaryTable& table);

/// The tokens whose outputs are wanted, the same number in each row: positions [B, O], and the same as flat indices row
/// * T + position. Undefined: all tokens.
struct OutputPlaces {
  Tensor place_BO;
  Tensor flat_M;
};

/// Returns the positions on `device`, for rows of `width` tokens.
OutputPlaces output_places(const Tensor& outputs_BO, int64_t width, at::Device device);

/// Takes x [B, T, ...] at these positions of each row: [B, O, ...].
Tensor take_places(const Tensor& x, const OutputPlaces& places);

/// What the layers of one stage share, on the stage's device; separately for layers with and without a window. Q: the T
/// tokens, or those that give outputs.
struct AttentionInputs {
  RopeConfig rope;
  RotaryTable keys;
  RotaryTable queries;
  Tensor mask_B1QS;      ///< bool, true: may attend; undefined: plain causal attention
  OutputPlaces outputs;  ///< the tokens that are queries
  PackedDocuments packed;
  std::shared_ptr<const RaggedRows> ragged;  ///< null: rows are not ragged
  std::shared_ptr<const MixerRows> mixer;    ///< null: no layer of the model has a recurrent mixer
  Tensor slopes_1H;  ///< what ALiBi adds to each query [1, 1, H, X], and to keys [B, T, 1, X]; undefined: nothing
  Tensor places_BT1;
};

enum class LayerReach : uint8_t { kAll, kWindow };

class HeldPass;

/// The inputs of a whole pass.
struct PassInputs {
  std::map<std::pair<int64_t, LayerReach>, AttentionInputs> stages;  ///< by the stage's index in the placement
  AttentionInputs last;  ///< inputs of the last layer, if the sequence names its outputs
  std::map<int64_t, std::shared_ptr<const HeldPass>> elsewhere;  ///< what other ranks hold, by their first layer in it
};

/// The inputs of a layer, all on its device.
struct LayerContext {
  const ModelConfig& config;
  const LayerWeights& weights;
  const AttentionInputs& inputs;
  const SequenceInfo& sequence;
  const HookSet& hooks;
  int64_t layer;

  /// Passes a value through the hooks of a place. Returns false if the pass ends there.
  bool pass(HookPoint point, Tensor& value) const;
};

/// Returns tables for the sequence's positions in `dtype`, and its mask, on `device`.
AttentionInputs attention_inputs(const ModelConfig& config, const SequenceInfo& sequence, LayerReach reach,
                                 const RopeFrequencies& frequencies, at::Device device, at::ScalarType dtype);

/// Returns the inputs of a layer that computes only the outputs that the sequence asks for.
AttentionInputs only_outputs(const AttentionInputs& inputs, const SequenceInfo& sequence, at::Device device,
                             at::ScalarType dtype);

/// Computes x [B, T, D] -> [B, Q, H * C], the results of all heads, which the output projection reads; undefined if the
/// hooks stop the pass before them.
Tensor attention(const LayerContext& context, const Tensor& x_BTD);

}  // namespace lancet
