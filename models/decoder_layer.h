// One pre-norm decoder layer: RMSNorm, rotary grouped-query attention, RMSNorm, gated MLP. Pure functions of tensors on
// one device.
#pragma once

#include <map>

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

/// Tokens whose outputs are wanted, of each row as many: places [B, O], and the same as flat indices row * T + place.
/// Undefined: all tokens.
struct OutputPlaces {
  Tensor place_BO;
  Tensor flat_M;
};

/// On `device`, of rows of `width` tokens.
OutputPlaces output_places(const Tensor& outputs_BO, int64_t width, at::Device device);

/// What the layers of one stage share, on the stage's device. Q: the T tokens, or those among them that give outputs.
struct AttentionInputs {
  RotaryTable keys;
  RotaryTable queries;
  Tensor mask_B1QS;      ///< bool, true: may attend; undefined: plain causal attention
  OutputPlaces outputs;  ///< which tokens are the queries
  PackedDocuments packed;
};

/// Of a whole pass.
struct PassInputs {
  std::map<int64_t, AttentionInputs> stages;  ///< by index in the placement
  AttentionInputs last;                       ///< of the last layer, where the sequence names its outputs
};

enum class RopePrecision { kF32, kF64 };
/// Frequencies [C / 2] of the rotary embedding, computed on the host.
Tensor rope_frequencies(const ModelConfig& config, RopePrecision precision);

/// Cosines and sines of the sequence's positions in `dtype`, and its mask, on the frequencies' device.
AttentionInputs attention_inputs(const SequenceInfo& sequence, const Tensor& frequencies, at::ScalarType dtype);

/// The same for a layer that computes only the outputs that the sequence asks for.
AttentionInputs only_outputs(const AttentionInputs& inputs, const SequenceInfo& sequence);

/// x [B, T, ...] at these places of each row -> [B, O, ...].
Tensor take_places(const Tensor& x, const OutputPlaces& places);

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
