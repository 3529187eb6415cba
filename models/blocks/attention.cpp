#include "attention.h"

#include <torch/types.h>
#include <algorithm>
#include <cmath>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/attention.h"
#include "lancet/kernels/decoder_ops.h"
#include "lancet/runtime/send.h"
#include "latent_heads.h"
#include "pointwise.h"

namespace lancet {
namespace {

using enum WeightKind;

/// [B, T, heads * C] -> [B, T, heads, C].
Tensor by_heads(const Tensor& x, int64_t head_dim) { return x.unflatten(2, {-1, head_dim}); }

RotaryTable table_at(const RotaryTable& table, const OutputPlaces& places) {
  if (!table.cos.defined()) return {};
  return {take_places(table.cos, places), take_places(table.sin, places)};
}

/// Returns the table for queries that grow with their positions. All numbers of a head must be rotated.
RotaryTable grown(const RopeConfig& rope, const RotaryTable& table, const SequenceInfo& sequence) {
  if (rope.growth == 0) return table;
  const Tensor times_BT = (sequence.positions_BT / static_cast<double>(rope.original_max_positions)).floor();
  const Tensor factor_BT11 =
      sent_to(table.cos.device(), (times_BT.to(torch::kDouble).log1p() * rope.growth + 1).unsqueeze(2).unsqueeze(3));
  return {table.cos * factor_BT11.to(table.cos.scalar_type()), table.sin * factor_BT11.to(table.sin.scalar_type())};
}

/// The numbers that ALiBi adds to each head: two for a position, and zeros, because kernels need head sizes that are
/// multiples of 8.
int64_t added_numbers(const ModelConfig& config) { return config.attended_dim() - config.head_dim; }
constexpr int64_t kPlaceNumbers = 2;
// a position is split into two parts with few bits, which half precision represents exactly
constexpr int64_t kPlacesApart = 128;

/// Adds to the products of queries and keys a term that depends on the key's position. Softmax does not change if this
/// is a position instead of a distance.
void add_slopes(const ModelConfig& config, const SequenceInfo& sequence, at::Device device, at::ScalarType dtype,
                AttentionInputs& inputs) {
  if (config.alibi_slopes.empty()) return;
  const int64_t zeros = added_numbers(config) - kPlaceNumbers;
  const auto padded = [&](const Tensor& x) { return at::constant_pad_nd(x, {0, zeros}); };
  const Tensor slope_H = torch::tensor(config.alibi_slopes, torch::kDouble) / config.attention_scale;
  const Tensor both_H2 = torch::stack({slope_H * static_cast<double>(kPlacesApart), slope_H}, 1);
  const Tensor high_BT = sequence.positions_BT.div(kPlacesApart, "floor");
  const Tensor place_BT2 = torch::stack({high_BT, sequence.positions_BT - high_BT * kPlacesApart}, 2);
  inputs.slopes_1H = sent_to(device, padded(both_H2).unsqueeze(0).unsqueeze(0)).to(dtype);
  inputs.places_BT1 = sent_to(device, padded(place_BT2).unsqueeze(2)).to(dtype);
}

/// Returns x [B, T, heads, C] with `added` after the numbers of each head.
Tensor with_added(const Tensor& x_BTHC, const Tensor& added) {
  return torch::cat({x_BTHC, added.expand({x_BTHC.size(0), x_BTHC.size(1), x_BTHC.size(2), -1})}, 3);
}

/// With LongRoPE, all keys of a text are rotated differently once it is longer than the original training length. So
/// cached keys cannot be used after this point.
void check_growth(const RopeConfig& rope, const SequenceInfo& sequence) {
  if (rope.scaling != RopeConfig::Scaling::kLongRope || sequence.prefix == nullptr || sequence.prefix->empty()) return;
  const Tensor before = positions_before(sequence);
  const Tensor has_grown = before.gt(0) & before.le(rope.original_max_positions) &
                           positions_reached(sequence).gt(rope.original_max_positions);
  if (!has_grown.any().item<bool>()) return;
  throw ConfigError(cat("a text grows beyond ", rope.original_max_positions,
                        " tokens, where this model's rotary embedding changes (LongRoPE): expected prompt and "
                        "continuation to be of at most so many together, or the prompt alone of more"));
}

/// Returns the rows in which all tokens attend, or only those whose outputs are wanted.
std::shared_ptr<const RaggedRows> ragged_inputs(const SequenceInfo& sequence, int64_t window, const Tensor& queries_M,
                                                at::Device device, at::ScalarType dtype) {
  RaggedLayout layout = *sequence.ragged;
  layout.window = window;
  layout.queries.assign(queries_M.const_data_ptr<int64_t>(), queries_M.const_data_ptr<int64_t>() + queries_M.numel());
  return std::make_shared<RaggedRows>(ragged_rows(layout, device, dtype));
}

/// Computes attention of ragged rows: [1, Q, H, C] -> [1, Q, H * C].
Tensor attend_in_ragged_rows(const Tensor& query_1QHC, const KeyValuePair& fresh_1TKC, const KeyValuePair& pool_1KSC,
                             const RaggedRows& rows, AttentionRule rule) {
  const auto only_row = [](const Tensor& x) { return x.defined() ? x.squeeze(0) : x; };
  return ragged_attention(only_row(query_1QHC), {only_row(fresh_1TKC.key), only_row(fresh_1TKC.value)},
                          {only_row(pool_1KSC.key), only_row(pool_1KSC.value)}, rows, rule)
      .unsqueeze(0);
}

/// Computes attention for the kind of rows that the sequence has: ragged, packed, or padded.
Tensor attend(const Tensor& query, const KeyValuePair& fresh, const KeyValuePair& prefix, const AttentionInputs& inputs,
              AttentionRule rule) {
  if (inputs.ragged != nullptr) return attend_in_ragged_rows(query, fresh, prefix, *inputs.ragged, rule);
  if (!inputs.packed.runs.empty()) return packed_attention(query, fresh, inputs.packed, rule);
  return grouped_attention(query, fresh, prefix, inputs.mask_B1QS, rule);
}

/// The inputs of attention.
struct AttentionHeads {
  Tensor query_BQHC;
  KeyValuePair fresh;
  bool are_turned = false;
};

/// Whether there is only a rotary embedding of whole heads between the products and attention.
bool only_turns(const ModelConfig& config, const AttentionInputs& inputs, int64_t layer) {
  const RopeConfig& rope = inputs.rope;
  return config.has_rotary(layer) && inputs.keys.cos.defined() && rope.dim == config.head_dim && rope.growth == 0 &&
         rope.pairs != RopeConfig::Pairs::kAdjacent && config.head_norm == HeadNorm::kNone && config.qkv_limit == 0;
}

/// Returns heads from the projections: from one product, which also rotates them if it can, or from three products.
AttentionHeads projected_heads(const LayerContext& context, const Tensor& x_BTD) {
  const ModelConfig& config = context.config;
  const LayerWeights& w = context.weights;
  const AttentionInputs& inputs = context.inputs;
  const bool gives_all = !inputs.outputs.flat_M.defined();
  const Tensor joined = gives_all ? w.linear_of_neighbours(x_BTD, kQueryKeyValue, kQueryKeyValueBias) : Tensor();
  if (joined.defined()) {
    const bool turns = only_turns(config, inputs, context.layer);
    const RotaryTables tables = turns ? RotaryTables{inputs.keys.cos, inputs.keys.sin} : RotaryTables{};
    const SplitHeads heads = split_heads(joined, {config.n_heads, config.n_kv_heads, config.head_dim}, tables);
    return {heads.query_BTHC, {heads.key_BTKC, heads.value_BTKC}, turns};
  }
  const auto heads = [&](const Tensor& x, WeightKind weight, WeightKind bias) {
    return by_heads(w.linear(x, weight, bias), config.head_dim);
  };
  return {heads(take_places(x_BTD, inputs.outputs), kQuery, kQueryBias),
          {heads(x_BTD, kKey, kKeyBias), heads(x_BTD, kValue, kValueBias)}};
}

/// Returns heads that are clamped, normed and rotated as the configuration says; undefined if the pass ends before
/// them.
AttentionHeads placed_heads(const LayerContext& context, const Tensor& x_BTD) {
  const ModelConfig& config = context.config;
  const LayerWeights& w = context.weights;
  const AttentionInputs& inputs = context.inputs;
  if (config.latent.rank > 0) {
    const LatentHeads latent = latent_heads(context, x_BTD);
    return {latent.query_BQHC, {latent.key_BTHC, latent.value_BTHC}, true};
  }
  const AttentionHeads heads = projected_heads(context, x_BTD);
  if (heads.are_turned) return heads;
  const auto limited = [&](const Tensor& x) {
    return config.qkv_limit > 0 ? x.clamp(-config.qkv_limit, config.qkv_limit) : x;
  };
  const auto placed = [&](const Tensor& x_BTHC, WeightKind norm, WeightKind bias, const RotaryTable& table) {
    const auto turn = [&](const Tensor& x) {
      return config.has_rotary(context.layer) ? turned(inputs.rope, x, table) : x;
    };
    if (config.norms_turned_heads) return normed_heads(config, turn(x_BTHC), w[norm], w[bias]);
    return turn(limited(normed_heads(config, x_BTHC, w[norm], w[bias])));
  };
  return {placed(heads.query_BQHC, kQueryNorm, kQueryNormBias, inputs.queries),
          {placed(heads.fresh.key, kKeyNorm, kKeyNormBias, inputs.keys), limited(heads.fresh.value)},
          true};
}

}  // namespace

OutputPlaces output_places(const Tensor& outputs_BO, int64_t width, at::Device device) {
  if (!outputs_BO.defined()) return {};
  const Tensor row_B1 = torch::arange(outputs_BO.size(0), torch::kLong).unsqueeze(1);
  return {sent_to(device, outputs_BO), sent_to(device, (outputs_BO + row_B1 * width).flatten())};
}

Tensor take_places(const Tensor& x, const OutputPlaces& places) {
  if (!places.flat_M.defined()) return x;
  return x.flatten(0, 1).index_select(0, places.flat_M).unflatten(0, places.place_BO.sizes());
}

AttentionInputs attention_inputs(const ModelConfig& config, const SequenceInfo& sequence, LayerReach reach,
                                 const RopeFrequencies& frequencies, at::Device device, at::ScalarType dtype) {
  const bool has_window = reach == LayerReach::kWindow;
  check_growth(config.rope, sequence);
  AttentionInputs inputs;
  inputs.rope = has_window && config.window_rope ? *config.window_rope : config.rope;
  inputs.keys = rotary_table(inputs.rope, frequencies, sequence, dtype);
  inputs.queries = grown(inputs.rope, inputs.keys, sequence);
  const int64_t window = has_window ? config.window : 0;
  const Tensor mask = attention_mask(sequence, window);
  if (mask.defined()) inputs.mask_B1QS = sent_to(device, mask);
  if (sequence.ragged != nullptr)
    inputs.ragged = ragged_inputs(sequence, window, torch::arange(sequence.positions_BT.size(1)), device, dtype);
  inputs.packed = packed_documents(sequence, device);
  inputs.packed.window = window;
  add_slopes(config, sequence, device, dtype, inputs);
  if (!config.recurrence.layers.empty()) inputs.mixer = std::make_shared<MixerRows>(mixer_rows(sequence, device));
  return inputs;
}

AttentionInputs only_outputs(const AttentionInputs& inputs, const SequenceInfo& sequence, at::Device device,
                             at::ScalarType dtype) {
  AttentionInputs some = inputs;
  some.outputs = output_places(sequence.outputs_BO, sequence.positions_BT.size(1), device);
  some.queries = table_at(inputs.queries, some.outputs);
  if (sequence.ragged != nullptr) {
    some.ragged = ragged_inputs(sequence, inputs.ragged->window, sequence.outputs_BO.flatten(), device, dtype);
  } else if (!sequence.packed.empty()) {
    some.packed.queries = packed_queries(sequence, device);
  } else if (inputs.mask_B1QS.defined()) {
    some.mask_B1QS = take_places(inputs.mask_B1QS.squeeze(1), some.outputs).unsqueeze(1);
  } else {  // attention is causal over the whole width; for only some positions it needs a mask
    const Tensor places_S = torch::arange(sequence.positions_BT.size(1), some.outputs.place_BO.options());
    some.mask_B1QS = (places_S <= some.outputs.place_BO.unsqueeze(2)).unsqueeze(1);
  }
  return some;
}

bool LayerContext::pass(HookPoint point, Tensor& value) const {
  const HookSite site{point, layer};
  value = hooks.apply(site, std::move(value));
  return !hooks.stops_at(site);
}

Tensor attention(const LayerContext& context, const Tensor& x_BTD) {
  const auto& [config, w, inputs, sequence, hooks, layer] = context;
  AttentionHeads heads = placed_heads(context, x_BTD);
  Tensor& query = heads.query_BQHC;
  if (!query.defined()) return {};
  KeyValuePair& fresh = heads.fresh;
  const bool has_slopes = inputs.slopes_1H.defined();
  if (has_slopes) {
    query = with_added(query, inputs.slopes_1H);
    fresh = {with_added(fresh.key, inputs.places_BT1), at::constant_pad_nd(fresh.value, {0, added_numbers(config)})};
  }
  const KeyValues* earlier = sequence.prefix;
  KeyValuePair prefix;
  if (earlier != nullptr && !earlier->empty()) prefix = earlier->layer(layer);
  if (KeyValues* record = sequence.record; record != nullptr) {
    record->record(layer, fresh);
    // the record now has these tokens, too, so nothing needs to be joined
    if (prefix.key.defined() && record == earlier) {
      prefix = record->layer(layer);
      fresh = {fresh.key.slice(1, 0, 0), fresh.value.slice(1, 0, 0)};
    }
  }
  const AttentionRule rule{config.attention_scale, config.attention_cap, w[kSinks]};
  Tensor attended = attend(query, fresh, prefix, inputs, rule);
  const int64_t own = config.attended_size() / config.n_heads;  // removes zeros that only made values as long as keys
  if (own < query.size(3)) attended = by_heads(attended, query.size(3)).narrow(3, 0, own).flatten(2);
  if (!config.gated_attention) return attended;
  return attended * w.linear(take_places(x_BTD, inputs.outputs), kAttnGate).sigmoid();
}

namespace {

/// Llama 3.1's scaling: long wavelengths are divided by the factor, short ones stay, and between them there is a linear
/// transition.
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

/// Returns, as a fraction, the index of the pair of `rope.dim` numbers that makes `turns` rotations within the original
/// positions.
double pair_of_turns(const RopeConfig& rope, double turns) {
  const double wavelength = static_cast<double>(rope.original_max_positions) / (turns * 2 * M_PI);
  return static_cast<double>(rope.dim) * std::log(wavelength) / (2 * std::log(rope.theta));
}

/// YaRN's scaling: the transition goes from the pair of `fast_turns` to that of `slow_turns`.
Tensor stretch_yarn(const Tensor& wavelengths, const RopeConfig& rope) {
  double begin = pair_of_turns(rope, rope.fast_turns), end = pair_of_turns(rope, rope.slow_turns);
  if (rope.passes_at_whole_pairs) {
    begin = std::floor(begin);
    end = std::ceil(end);
  }
  begin = std::max(begin, 0.0);
  // as in transformers, although there are only half as many pairs
  end = std::min(end, static_cast<double>(rope.dim - 1));
  if (begin == end) end += 0.001;
  const Tensor pairs = torch::arange(rope.dim / 2, wavelengths.options());
  const Tensor kept = 1 - ((pairs - begin) / (end - begin)).clamp(0, 1);
  return 1.0 / (rope.factor * wavelengths) * (1 - kept) + 1.0 / wavelengths * kept;
}

/// Rotates the pairs (2 i, 2 i + 1) of x [..., C] with tables [..., C / 2], one entry for each pair.
Tensor turn_adjacent(const Tensor& x_BTHC, const RotaryTable& table) {
  const Tensor a = x_BTHC.slice(-1, 0, at::nullopt, 2), b = x_BTHC.slice(-1, 1, at::nullopt, 2);
  const int64_t half = a.size(-1);
  const Tensor cos = table.cos.narrow(-1, 0, half), sin = table.sin.narrow(-1, 0, half);
  return torch::stack({a * cos - b * sin, b * cos + a * sin}, -1).flatten(-2);
}

}  // namespace

RopeFrequencies RopeFrequencies::to(at::Device device) const {
  const auto move = [&](const Tensor& x) { return x.defined() ? x.to(device) : x; };
  return {move(usual), move(beyond)};
}

RopeFrequencies rope_frequencies(const RopeConfig& rope, RopePrecision precision) {
  if (rope.dim == 0) return {};
  // The same operations in the same precision as in transformers: at high positions, a difference in the last bit would
  // grow.
  const auto type = precision == RopePrecision::kF64 ? torch::kDouble : torch::kFloat;
  const Tensor exponents = torch::arange(0, rope.dim, 2, torch::kLong).to(type) / static_cast<double>(rope.dim);
  const Tensor wavelengths = torch::pow(rope.theta, exponents);
  const auto divided = [&](const std::vector<double>& factors) {
    return 1.0 / (torch::tensor(factors, torch::kDouble).to(type) * wavelengths);
  };
  switch (rope.scaling) {
    case RopeConfig::Scaling::kNone:
    case RopeConfig::Scaling::kDynamic:
      return {1.0 / wavelengths, {}};
    case RopeConfig::Scaling::kLinear:
      return {1.0 / wavelengths / rope.factor, {}};
    case RopeConfig::Scaling::kLlama3:
      return {stretch_llama3(1.0 / wavelengths, rope), {}};
    case RopeConfig::Scaling::kLongRope:
      return {divided(rope.short_factors), divided(rope.long_factors)};
    case RopeConfig::Scaling::kYarn:
      return {stretch_yarn(wavelengths, rope), {}};
  }
  return {};
}

Tensor frequencies_of_rows(const RopeConfig& rope, const RopeFrequencies& frequencies, const SequenceInfo& sequence) {
  if (!frequencies.beyond.defined() || sequence.positions_BT.numel() == 0) return frequencies.usual;
  const Tensor is_beyond = positions_reached(sequence) > rope.original_max_positions;
  if (is_beyond.all().item<bool>()) return frequencies.beyond;
  if (!is_beyond.any().item<bool>()) return frequencies.usual;
  return torch::where(sent_to(frequencies.usual.device(), is_beyond.unsqueeze(2)), frequencies.beyond,
                      frequencies.usual);
}

RotaryTable rotary_table(const RopeConfig& rope, const RopeFrequencies& frequencies, const SequenceInfo& sequence,
                         at::ScalarType dtype) {
  if (!frequencies.usual.defined()) return {};
  const Tensor used = frequencies_of_rows(rope, frequencies, sequence);
  const Tensor angles = sent_to(used.device(), sequence.positions_BT).to(used.scalar_type()).unsqueeze(2) * used;
  const Tensor forward = torch::cat({angles, angles}, 2).unsqueeze(2);
  const Tensor both = rope.is_backwards ? -forward : forward;
  if (rope.amplitude == 1) return {both.cos().to(dtype), both.sin().to(dtype)};
  return {(both.cos() * rope.amplitude).to(dtype), (both.sin() * rope.amplitude).to(dtype)};
}

Tensor turned(const RopeConfig& rope, const Tensor& x_BTHC, const RotaryTable& table) {
  if (!table.cos.defined()) return x_BTHC;
  const bool is_whole = rope.dim == x_BTHC.size(3);
  const Tensor part = is_whole ? x_BTHC : x_BTHC.narrow(3, 0, rope.dim);
  const Tensor turned = rope.pairs == RopeConfig::Pairs::kAdjacent ? turn_adjacent(part, table)
                                                                   : rotate_pairs(part, table.cos, table.sin);
  if (is_whole) return turned;
  return torch::cat({turned, x_BTHC.narrow(3, rope.dim, x_BTHC.size(3) - rope.dim)}, 3);
}

}  // namespace lancet
