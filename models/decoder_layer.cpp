#include "decoder_layer.h"

#include <torch/types.h>

#include <cmath>

#include "packed_attention.h"

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

/// Rotates pairs (i, i + C/2) as Llama checkpoints lay them out.
Tensor rotate(const Tensor& x_BHTC, const AttentionInputs& inputs) {
  const auto halves = x_BHTC.chunk(2, -1);
  return x_BHTC * inputs.cos_B1TC + torch::cat({-halves[1], halves[0]}, -1) * inputs.sin_B1TC;
}

/// [B, T, heads * C] -> [B, heads, T, C].
Tensor split_heads(const Tensor& x, int64_t head_dim) { return x.unflatten(2, {-1, head_dim}).transpose(1, 2); }

/// Appends this layer's keys and values to the record. The record's `valid_BP` is extended once a pass, by run_layers.
void append(std::vector<Tensor>& record, size_t layer, const Tensor& fresh) {
  if (record.size() <= layer) record.resize(layer + 1);
  record[layer] = record[layer].defined() ? torch::cat({record[layer], fresh}, 2) : fresh;
}

/// Attention of H query heads over K <= H key/value heads, [B, H, T, C]. Undefined mask: causal.
Tensor grouped_attention(const Tensor& query_BHTC, const Tensor& key_BKSC, const Tensor& value_BKSC,
                         const Tensor& mask_B1TS) {
  const int64_t group = query_BHTC.size(1) / key_BKSC.size(1);
  if (!mask_B1TS.defined()) {
    const auto spread = [&](const Tensor& x) { return group == 1 ? x : x.repeat_interleave(group, 1); };
    return at::scaled_dot_product_attention(query_BHTC, spread(key_BKSC), spread(value_BKSC), {}, 0.0,
                                            /*is_causal=*/true);
  }
  // The heads of a group become more queries of one head: keys and values are not copied.
  const int64_t n_tokens = query_BHTC.size(2);
  const Tensor stacked = query_BHTC.unflatten(1, {-1, group}).flatten(2, 3);
  const Tensor mask = group == 1 ? mask_B1TS : mask_B1TS.repeat({1, 1, group, 1});
  return at::scaled_dot_product_attention(stacked, key_BKSC, value_BKSC, mask)
      .unflatten(2, {group, n_tokens})
      .flatten(1, 2);
}

Tensor attention(const LayerContext& context, const Tensor& x_BTD) {
  const ModelConfig& config = context.config;
  const LayerWeights& w = context.weights;
  const size_t layer = static_cast<size_t>(context.layer);
  const Tensor query = rotate(split_heads(at::linear(x_BTD, w.query, w.query_bias), config.head_dim), context.inputs);
  Tensor key = rotate(split_heads(at::linear(x_BTD, w.key, w.key_bias), config.head_dim), context.inputs);
  Tensor value = split_heads(at::linear(x_BTD, w.value, w.value_bias), config.head_dim);
  const Tensor fresh_key = key;
  const Tensor fresh_value = value;
  const KeyValues* prefix = context.sequence.prefix;
  if (prefix != nullptr && !prefix->empty()) {
    key = torch::cat({prefix->keys_BKPC[layer], key}, 2);
    value = torch::cat({prefix->values_BKPC[layer], value}, 2);
  }
  if (KeyValues* record = context.sequence.record; record != nullptr) {
    append(record->keys_BKPC, layer, fresh_key);
    append(record->values_BKPC, layer, fresh_value);
  }
  const auto attend = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    return grouped_attention(q, k, v, context.inputs.mask_B1TS);
  };
  const PackedDocuments packed{context.sequence.packed, context.inputs.places_P, context.inputs.first_T};
  const Tensor attended =
      packed.runs.empty() ? attend(query, key, value) : packed_attention(query, key, value, packed, attend);
  return at::linear(attended.transpose(1, 2).flatten(2), w.attn_out, w.attn_out_bias);
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

AttentionInputs attention_inputs(const SequenceInfo& sequence, const Tensor& frequencies, at::Device device,
                                 at::ScalarType dtype) {
  const Tensor angles = sequence.positions_BT.to(frequencies.scalar_type()).unsqueeze(2) * frequencies;
  const Tensor both = torch::cat({angles, angles}, 2).unsqueeze(1);
  AttentionInputs inputs;
  inputs.cos_B1TC = both.cos().to(device, dtype);
  inputs.sin_B1TC = both.sin().to(device, dtype);
  const Tensor mask = attention_mask(sequence);
  if (mask.defined()) inputs.mask_B1TS = mask.to(device);
  if (sequence.places_P.defined()) {
    inputs.places_P = sequence.places_P.to(device);
    inputs.first_T = sequence.first_T.to(device);
  }
  return inputs;
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  const Tensor precise = x.scalar_type() == torch::kDouble ? x : x.to(torch::kFloat);
  const Tensor scale = torch::rsqrt(precise.square().mean(-1, /*keepdim=*/true) + eps);
  return weight * (precise * scale).to(x.scalar_type());
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
  h_BTD = h_BTD + attended;

  Tensor x = rms_norm(h_BTD, w.mlp_norm, eps);
  if (!pass(HookPoint::kMlpIn, x)) return {};
  Tensor gate = at::linear(x, w.gate, w.gate_bias);
  if (!pass(HookPoint::kGateOut, gate)) return {};
  Tensor up = at::linear(x, w.up, w.up_bias);
  if (!pass(HookPoint::kUpOut, up)) return {};
  Tensor key = at::silu(gate) * up;
  if (!pass(HookPoint::kMlpKey, key)) return {};
  Tensor out = at::linear(key, w.down, w.down_bias);
  if (!pass(HookPoint::kMlpOut, out)) return {};
  h_BTD = h_BTD + out;
  if (!pass(HookPoint::kBlockOut, h_BTD)) return {};
  return h_BTD;
}

}  // namespace lancet
