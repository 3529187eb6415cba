#include "decoder_layer.h"

#include <torch/types.h>

#include <cmath>

#include "lancet/kernels/attention.h"
#include "lancet/kernels/decoder_ops.h"

namespace lancet {
namespace {

/// Llama 3.1's stretching: long wavelengths divided by the factor, short ones kept, a linear passage in between.
Tensor stretch_llama3(const Tensor& frequencies, const RopeConfig& rope) {
  const double original = static_cast<double>(rope.original_max_positions);
  const double low_wavelength = original / rope.low_freq_factor;
  const double high_wavelength = original / rope.high_freq_factor;
  const Tensor wavelengths = 2 * M_PI / frequencies;
  const Tensor smooth =
      (original / wavelengths - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  const Tensor passage = (1 - smooth) * (frequencies / rope.factor) + smooth * frequencies;
  return torch::where(wavelengths > low_wavelength, frequencies / rope.factor,
                      torch::where(wavelengths < high_wavelength, frequencies, passage));
}

/// [B, T, heads * C] -> [B, T, heads, C].
Tensor split_heads(const Tensor& x, int64_t head_dim) { return x.unflatten(2, {-1, head_dim}); }

Tensor attention(const LayerContext& context, const Tensor& x_BTD) {
  const LayerWeights& w = context.weights;
  const AttentionInputs& inputs = context.inputs;
  const auto heads = [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    return split_heads(at::linear(x, weight, bias), context.config.head_dim);
  };
  const auto rotate = [](const Tensor& x_BTHC, const RotaryTable& table) {
    return rotate_pairs(x_BTHC, table.cos_BT1C, table.sin_BT1C);
  };
  const Tensor query = rotate(heads(take_places(x_BTD, inputs.outputs), w.query, w.query_bias), inputs.queries);
  KeyValuePair fresh{rotate(heads(x_BTD, w.key, w.key_bias), inputs.keys), heads(x_BTD, w.value, w.value_bias)};
  const KeyValues* earlier = context.sequence.prefix;
  KeyValuePair prefix;
  if (earlier != nullptr && !earlier->empty()) prefix = earlier->layer(context.layer);
  if (KeyValues* record = context.sequence.record; record != nullptr) {
    record->record(context.layer, fresh);
    if (prefix.key.defined() && record == earlier) {  // these tokens are there too now: nothing needs to be joined
      prefix = record->layer(context.layer);
      fresh = {fresh.key.slice(1, 0, 0), fresh.value.slice(1, 0, 0)};
    }
  }
  const Tensor attended = inputs.packed.runs.empty() ? grouped_attention(query, fresh, prefix, inputs.mask_B1QS)
                                                     : packed_attention(query, fresh, inputs.packed);
  return at::linear(attended, w.attn_out, w.attn_out_bias);
}

}  // namespace

Tensor rope_frequencies(const ModelConfig& config, RopePrecision precision) {
  // The same operations in the same precision as transformers: at high positions a last-bit difference would grow.
  const auto type = precision == RopePrecision::kF64 ? torch::kDouble : torch::kFloat;
  const Tensor exponents =
      torch::arange(0, config.head_dim, 2, torch::kLong).to(type) / static_cast<double>(config.head_dim);
  const Tensor frequencies = 1.0 / torch::pow(config.rope.theta, exponents);
  switch (config.rope.scaling) {
    case RopeConfig::Scaling::kNone:
      return frequencies;
    case RopeConfig::Scaling::kLinear:
      return frequencies / config.rope.factor;
    case RopeConfig::Scaling::kLlama3:
      return stretch_llama3(frequencies, config.rope);
  }
  return frequencies;
}

AttentionInputs attention_inputs(const SequenceInfo& sequence, const Tensor& frequencies, at::ScalarType dtype) {
  const at::Device device = frequencies.device();
  const Tensor positions_BT = sequence.positions_BT.to(device);
  const Tensor angles = positions_BT.to(frequencies.scalar_type()).unsqueeze(2) * frequencies;
  const Tensor both = torch::cat({angles, angles}, 2).unsqueeze(2);
  AttentionInputs inputs;
  inputs.keys = {both.cos().to(dtype), both.sin().to(dtype)};
  inputs.queries = inputs.keys;
  const Tensor mask = attention_mask(sequence);
  if (mask.defined()) inputs.mask_B1QS = mask.to(device);
  inputs.packed.runs = sequence.packed;
  if (sequence.places_P.defined()) {
    inputs.packed.places_P = sequence.places_P.to(device);
    inputs.packed.first_T = sequence.first_T.to(device);
  }
  return inputs;
}

AttentionInputs only_outputs(const AttentionInputs& inputs, const SequenceInfo& sequence) {
  const at::Device device = inputs.keys.cos_BT1C.device();
  AttentionInputs some = inputs;
  some.outputs = output_places(sequence.outputs_BO, sequence.positions_BT.size(1), device);
  some.queries = {take_places(inputs.keys.cos_BT1C, some.outputs), take_places(inputs.keys.sin_BT1C, some.outputs)};
  if (!sequence.packed.empty()) {
    some.packed.queries = packed_queries(sequence, device);
  } else if (inputs.mask_B1QS.defined()) {
    some.mask_B1QS = take_places(inputs.mask_B1QS.squeeze(1), some.outputs).unsqueeze(1);
  } else {  // attention is causal over the whole width; of some places alone it needs to be told
    const Tensor places_S = torch::arange(sequence.positions_BT.size(1), some.outputs.place_BO.options());
    some.mask_B1QS = (places_S <= some.outputs.place_BO.unsqueeze(2)).unsqueeze(1);
  }
  return some;
}

OutputPlaces output_places(const Tensor& outputs_BO, int64_t width, at::Device device) {
  if (!outputs_BO.defined()) return {};
  const Tensor row_B1 = torch::arange(outputs_BO.size(0), torch::kLong).unsqueeze(1);
  return {outputs_BO.to(device), (outputs_BO + row_B1 * width).flatten().to(device)};
}

Tensor take_places(const Tensor& x, const OutputPlaces& places) {
  if (!places.flat_M.defined()) return x;
  return x.flatten(0, 1).index_select(0, places.flat_M).unflatten(0, places.place_BO.sizes());
}

Tensor run_decoder_layer(const LayerContext& context, Tensor h_BTD) {
  const LayerWeights& w = context.weights;
  const double eps = context.config.rms_norm_eps;
  // Passes a value through the hooks of a site; false when the pass ends there.
  const auto pass = [&](HookPoint point, Tensor& value) {
    const HookSite site{point, context.layer};
    value = context.hooks.apply(site, std::move(value));
    return !context.hooks.stops_at(site);
  };

  if (!pass(HookPoint::kBlockIn, h_BTD)) return {};
  Tensor attended = attention(context, rms_norm(h_BTD, w.attn_norm, eps));
  if (!pass(HookPoint::kAttnOut, attended)) return {};
  auto [sum_BTD, x] = add_rms_norm(take_places(h_BTD, context.inputs.outputs), attended, w.mlp_norm, eps);
  h_BTD = std::move(sum_BTD);

  if (!pass(HookPoint::kMlpIn, x)) return {};
  Tensor gate = at::linear(x, w.gate, w.gate_bias);
  if (!pass(HookPoint::kGateOut, gate)) return {};
  Tensor up = at::linear(x, w.up, w.up_bias);
  if (!pass(HookPoint::kUpOut, up)) return {};
  Tensor key = silu_times(gate, up);
  if (!pass(HookPoint::kMlpKey, key)) return {};
  Tensor out = at::linear(key, w.down, w.down_bias);
  if (!pass(HookPoint::kMlpOut, out)) return {};
  h_BTD = h_BTD + out;
  if (!pass(HookPoint::kBlockOut, h_BTD)) return {};
  return h_BTD;
}

}  // namespace lancet
