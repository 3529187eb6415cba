#include "attention.h"

#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/attention.h"
#include "lancet/runtime/send.h"
#include "norm.h"

namespace lancet {
namespace {

using enum WeightKind;

/// [B, T, heads * C] -> [B, T, heads, C].
Tensor split_heads(const Tensor& x, int64_t head_dim) { return x.unflatten(2, {-1, head_dim}); }

RotaryTable table_at(const RotaryTable& table, const OutputPlaces& places) {
  if (!table.cos.defined()) return {};
  return {take_places(table.cos, places), take_places(table.sin, places)};
}

/// LongRoPE turns all keys otherwise once a text is longer than the model was trained on at first: keys from before
/// cannot be gone on with.
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

/// Rows of which all tokens attend, or those alone whose outputs are wanted.
std::shared_ptr<const RaggedRows> ragged_inputs(const SequenceInfo& sequence, int64_t window, const Tensor& queries_M,
                                                at::Device device, at::ScalarType dtype) {
  RaggedLayout layout = *sequence.ragged;
  layout.window = window;
  layout.queries.assign(queries_M.const_data_ptr<int64_t>(), queries_M.const_data_ptr<int64_t>() + queries_M.numel());
  return std::make_shared<RaggedRows>(ragged_rows(layout, device, dtype));
}

/// Attention of ragged rows: [1, Q, H, C] -> [1, Q, H * C].
Tensor attend_in_ragged_rows(const Tensor& query_1QHC, const KeyValuePair& fresh_1TKC, const KeyValuePair& pool_1KSC,
                             const RaggedRows& rows, AttentionRule rule) {
  const auto only_row = [](const Tensor& x) { return x.defined() ? x.squeeze(0) : x; };
  return ragged_attention(only_row(query_1QHC), {only_row(fresh_1TKC.key), only_row(fresh_1TKC.value)},
                          {only_row(pool_1KSC.key), only_row(pool_1KSC.value)}, rows, rule)
      .unsqueeze(0);
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
  inputs.queries = inputs.keys;
  const int64_t window = has_window ? config.window : 0;
  const Tensor mask = attention_mask(sequence, window);
  if (mask.defined()) inputs.mask_B1QS = sent_to(device, mask);
  if (sequence.ragged != nullptr)
    inputs.ragged = ragged_inputs(sequence, window, torch::arange(sequence.positions_BT.size(1)), device, dtype);
  inputs.packed = packed_documents(sequence, device);
  inputs.packed.window = window;
  return inputs;
}

AttentionInputs only_outputs(const AttentionInputs& inputs, const SequenceInfo& sequence, at::Device device,
                             at::ScalarType dtype) {
  AttentionInputs some = inputs;
  some.outputs = output_places(sequence.outputs_BO, sequence.positions_BT.size(1), device);
  some.queries = table_at(inputs.keys, some.outputs);
  if (sequence.ragged != nullptr) {
    some.ragged = ragged_inputs(sequence, inputs.ragged->window, sequence.outputs_BO.flatten(), device, dtype);
  } else if (!sequence.packed.empty()) {
    some.packed.queries = packed_queries(sequence, device);
  } else if (inputs.mask_B1QS.defined()) {
    some.mask_B1QS = take_places(inputs.mask_B1QS.squeeze(1), some.outputs).unsqueeze(1);
  } else {  // attention is causal over the whole width; of some places alone it needs to be told
    const Tensor places_S = torch::arange(sequence.positions_BT.size(1), some.outputs.place_BO.options());
    some.mask_B1QS = (places_S <= some.outputs.place_BO.unsqueeze(2)).unsqueeze(1);
  }
  return some;
}

Tensor attention(const ModelConfig& config, const LayerWeights& w, const AttentionInputs& inputs,
                 const SequenceInfo& sequence, int64_t layer, const Tensor& x_BTD) {
  const auto heads = [&](const Tensor& x, WeightKind weight, WeightKind bias) {
    return split_heads(w.linear(x, weight, bias), config.head_dim);
  };
  const auto placed = [&](const Tensor& x_BTHC, WeightKind norm, const RotaryTable& table) {
    return turned(inputs.rope, normed_heads(config, x_BTHC, w[norm]), table);
  };
  const Tensor query =
      placed(heads(take_places(x_BTD, inputs.outputs), kQuery, kQueryBias), kQueryNorm, inputs.queries);
  KeyValuePair fresh{placed(heads(x_BTD, kKey, kKeyBias), kKeyNorm, inputs.keys), heads(x_BTD, kValue, kValueBias)};
  const KeyValues* earlier = sequence.prefix;
  KeyValuePair prefix;
  if (earlier != nullptr && !earlier->empty()) prefix = earlier->layer(layer);
  if (KeyValues* record = sequence.record; record != nullptr) {
    record->record(layer, fresh);
    if (prefix.key.defined() && record == earlier) {  // these tokens are there too now: nothing needs to be joined
      prefix = record->layer(layer);
      fresh = {fresh.key.slice(1, 0, 0), fresh.value.slice(1, 0, 0)};
    }
  }
  const AttentionRule rule{config.attention_scale, config.attention_cap};
  if (inputs.ragged != nullptr) return attend_in_ragged_rows(query, fresh, prefix, *inputs.ragged, rule);
  return inputs.packed.runs.empty() ? grouped_attention(query, fresh, prefix, inputs.mask_B1QS, rule)
                                    : packed_attention(query, fresh, inputs.packed, rule);
}

}  // namespace lancet
