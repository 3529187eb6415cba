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

// Rotary position embedding: frequencies, tables of cosines and sines, and turning queries and keys by them.

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

/// Tokens whose outputs are wanted, of each row as many: places [B, O], and the same as flat indices row * T + place.
/// Undefined: all tokens.
struct OutputPlaces {
  Tensor place_BO;
  Tensor flat_M;
};

/// Returns the places on `device`, in rows of `width` tokens.
OutputPlaces output_places(const Tensor& outputs_BO, int64_t width, at::Device device);

/// x [B, T, ...] at these places of each row -> [B, O, ...].
Tensor take_places(const Tensor& x, const OutputPlaces& places);

/// What layers of one stage share, on the stage's device: those with a window, or those without. Q: the T tokens, or
/// those among them that give outputs.
struct AttentionInputs {
  RopeConfig rope;
  RotaryTable keys;
  RotaryTable queries;
  Tensor mask_B1QS;      ///< bool, true: may attend; undefined: plain causal attention
  OutputPlaces outputs;  ///< which tokens are the queries
  PackedDocuments packed;
  std::shared_ptr<const RaggedRows> ragged;  ///< null: rows are not ragged
  std::shared_ptr<const MixerRows> mixer;    ///< null: no layer of the model has a recurrent mixer
  Tensor slopes_1H;  ///< what ALiBi adds to each query [1, 1, H, X], and to keys [B, T, 1, X]; undefined: nothing
  Tensor places_BT1;
};

enum class LayerReach : uint8_t { kAll, kWindow };

class HeldPass;

/// Inputs of a whole pass.
struct PassInputs {
  std::map<std::pair<int64_t, LayerReach>, AttentionInputs> stages;  ///< inputs by index in the placement
  AttentionInputs last;  ///< inputs of the last layer, where the sequence names its outputs
  std::map<int64_t, std::shared_ptr<const HeldPass>> elsewhere;  ///< what other ranks hold, by their first layer in it
};

/// What a layer runs with, all of it on its device.
struct LayerContext {
  const ModelConfig& config;
  const LayerWeights& weights;
  const AttentionInputs& inputs;
  const SequenceInfo& sequence;
  const HookSet& hooks;
  int64_t layer;

  /// Passes a value through the hooks of a place; false when the pass ends there.
  bool pass(HookPoint point, Tensor& value) const;
};

/// Tables of the sequence's positions in `dtype`, and its mask, on `device`.
AttentionInputs attention_inputs(const ModelConfig& config, const SequenceInfo& sequence, LayerReach reach,
                                 const RopeFrequencies& frequencies, at::Device device, at::ScalarType dtype);

/// Returns the inputs of a layer that computes only the outputs that the sequence asks for.
AttentionInputs only_outputs(const AttentionInputs& inputs, const SequenceInfo& sequence, at::Device device,
                             at::ScalarType dtype);

/// x [B, T, D] -> [B, Q, H * C], all heads' results: what the output projection reads; undefined when the hooks stop
/// the pass before them.
Tensor attention(const LayerContext& context, const Tensor& x_BTD);

}  // namespace lancet
