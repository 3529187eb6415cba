#include "layer_moments.h"

#include <torch/types.h>

#include <algorithm>

#include "lancet/models/memory.h"

namespace lancet {
namespace {

bool is_by_expert(KeyShape keys, MatrixInput input) {
  return keys.experts > 1 && (input == MatrixInput::kMlpNormed || input == MatrixInput::kMlpKey);
}

/// One expert's part of the keys.
Tensor own_keys(const Tensor& keys_NF, KeyShape keys, int64_t expert) {
  return keys_NF.narrow(1, expert * keys.width, keys.width);
}

/// Which tokens go to an expert: those whose keys are not all zero, as they are where a token does not go.
Tensor tokens_of_expert(const LayerInputs& inputs, KeyShape keys, int64_t expert) {
  const Tensor& keys_NF = inputs[static_cast<size_t>(MatrixInput::kMlpKey)];
  return own_keys(keys_NF, keys, expert).ne(0).any(1).nonzero().flatten();
}

Tensor rows_of_expert(const LayerInputs& inputs, MatrixInput input, KeyShape keys, int64_t expert,
                      const Tensor& tokens_M) {
  const Tensor& all = inputs[static_cast<size_t>(input)];
  return (input == MatrixInput::kMlpKey ? own_keys(all, keys, expert) : all).index_select(0, tokens_M);
}

int64_t width_of(const ModelConfig& config, int64_t layer, MatrixInput input) {
  switch (input) {
    case MatrixInput::kHeads:
      return heads_input_size(config, layer);
    case MatrixInput::kMlpKey:
      return config.key_shape(layer).width;
    case MatrixInput::kSharedKey:
      return config.experts.shared;
    case MatrixInput::kQueryVector:
      return config.latent.query_rank;
    case MatrixInput::kKeyVector:
      return config.latent.rank;
    case MatrixInput::kMixerHeads:
      return config.recurrence.value_size();
    default:
      return config.d_model;
  }
}

/// What the layer's first matrix reads: every layer has one.
const Tensor& first_input(const LayerInputs& inputs) {
  return *std::ranges::find_if(inputs, [](const Tensor& input) { return input.defined(); });
}

}  // namespace

LayerMoments::LayerMoments(const ModelConfig& config, int64_t layer, at::Device device)
    : keys_(config.key_shape(layer)) {
  for (const MatrixInput input : kAllMatrixInputs) {
    if (!has_input(config, layer, input)) continue;
    const int64_t n = is_by_expert(keys_, input) ? keys_.experts : 1;
    for (int64_t expert = 0; expert < n; ++expert)
      sums_[static_cast<size_t>(input)].emplace_back(width_of(config, layer, input), device);
  }
}

void LayerMoments::add(const SequenceInfo& sequence, const LayerInputs& inputs) {
  const Tensor counts_N = token_counts(sequence);
  RowCounts counts(counts_N);
  tokens_ += counts.total(first_input(inputs).size(0));
  for (const MatrixInput input : kAllMatrixInputs)
    if (!is_by_expert(keys_, input) && inputs[static_cast<size_t>(input)].defined())
      sums_[static_cast<size_t>(input)].front().add(inputs[static_cast<size_t>(input)], counts);
  if (keys_.experts == 1) return;
  for (int64_t expert = 0; expert < keys_.experts; ++expert) {
    const Tensor tokens_M = tokens_of_expert(inputs, keys_, expert);
    if (tokens_M.size(0) == 0) continue;
    RowCounts own(counts_N.defined() ? counts_N.index_select(0, tokens_M.to(counts_N.device())) : Tensor());
    for (const MatrixInput input : {MatrixInput::kMlpNormed, MatrixInput::kMlpKey})
      sums_[static_cast<size_t>(input)][static_cast<size_t>(expert)].add(
          rows_of_expert(inputs, input, keys_, expert, tokens_M), own);
  }
}

Tensor LayerMoments::take(MatrixInput input, int64_t expert) {
  auto& sums = sums_[static_cast<size_t>(input)];
  GramAccumulator& sum = sums[sums.size() > 1 ? static_cast<size_t>(expert) : 0];
  const int64_t rows = sum.rows();
  if (rows == 0) return torch::zeros_like(sum.panels());
  return std::move(sum).take_mean().mul_(static_cast<double>(rows) / static_cast<double>(tokens_));
}

LayerKeys::LayerKeys(const ModelConfig& config, int64_t layer) : keys_(config.key_shape(layer)) {}

void LayerKeys::add(const SequenceInfo& sequence, const LayerInputs& inputs) {
  const int64_t width = sequence.positions_BT.size(1);
  std::vector<int64_t> places;
  for (size_t row = 0; row < sequence.lengths.size(); ++row)
    places.push_back(static_cast<int64_t>(row) * width + sequence.lengths[row] - 1);
  const Tensor places_B = to_index(places, first_input(inputs).device());
  for (size_t i = 0; i < kMatrixInputs; ++i) {
    if (!inputs[i].defined()) continue;
    const Tensor rows = inputs[i].index_select(0, places_B);
    rows_[i] = rows_[i].defined() ? torch::cat({rows_[i], rows}) : rows;
  }
}

Tensor LayerKeys::keys(MatrixInput input, int64_t expert) const {
  if (!is_by_expert(keys_, input)) return rows_[static_cast<size_t>(input)].t().to(torch::kDouble);
  return rows_of_expert(rows_, input, keys_, expert, tokens_of_expert(rows_, keys_, expert)).t().to(torch::kDouble);
}

}  // namespace lancet
