// One pre-norm decoder layer: RMSNorm, rotary grouped-query attention, RMSNorm, gated MLP. Pure functions of tensors on
// one device.
#pragma once

#include "lancet/models/hooks.h"
#include "lancet/models/model_config.h"
#include "lancet/models/sequence_info.h"
#include "packed_attention.h"

namespace lancet {

/// Biases are undefined tensors where the model has none. Matrices are [out, in].
struct LayerWeights {
  Tensor attn_norm, query, key, value, attn_out;
  Tensor query_bias, key_bias, value_bias, attn_out_bias;
  Tensor mlp_norm, gate, up, down;
  Tensor gate_bias, up_bias, down_bias;
};

/// In the compute dtype.
struct RotaryTable {
  Tensor cos_BT1C;
  Tensor sin_BT1C;
};

/// What the layers of one stage share, on the stage's device. Q: the T tokens, or those among them that give outputs.
struct AttentionInputs {
  RotaryTable keys;
  RotaryTable queries;
  Tensor mask_B1QS;   ///< bool, true: may attend; undefined: plain causal attention
  Tensor outputs_BQ;  ///< places of the queries in their rows; undefined: all
  PackedDocuments packed;
};

enum class RopePrecision { kF32, kF64 };
/// Frequencies [C / 2] of the rotary embedding, computed on the host.
Tensor rope_frequencies(const ModelConfig& config, RopePrecision precision);

/// Cosines and sines of the sequence's positions in `dtype`, and its mask, on the frequencies' device.
AttentionInputs attention_inputs(const SequenceInfo& sequence, const Tensor& frequencies, at::ScalarType dtype);

/// The same for a layer that computes only the outputs that the sequence asks for.
AttentionInputs only_outputs(const AttentionInputs& inputs, const SequenceInfo& sequence);

/// x [B, T, ...] at `places` [B, O] of each row -> [B, O, ...]. Undefined places: x.
Tensor take_places(const Tensor& x, const Tensor& places_BO);

struct LayerContext {
  const ModelConfig& config;
  const LayerWeights& weights;
  const AttentionInputs& inputs;
  const SequenceInfo& sequence;
  const HookSet& hooks;
  int64_t layer;
};

/// h [B, T, D] -> [B, Q, D]; undefined when the hooks stop the pass inside this layer.
Tensor run_decoder_layer(const LayerContext& context, Tensor h_BTD);

}  // namespace lancet
