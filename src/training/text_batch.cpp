#include "text_batch.h"

#include <torch/types.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace lancet {

ProjectionSites projection_sites(WeightId id) {
  switch (id.kind) {
    case WeightKind::kGate:
      return {{HookPoint::kMlpIn, id.layer}, {HookPoint::kGateOut, id.layer}};
    case WeightKind::kUp:
      return {{HookPoint::kMlpIn, id.layer}, {HookPoint::kUpOut, id.layer}};
    case WeightKind::kDown:
      return {{HookPoint::kMlpKey, id.layer}, {HookPoint::kMlpOut, id.layer}};
    default:
      throw std::logic_error("training: only gate, up and down projections can be trained");
  }
}

int64_t count_places(const TokenizedRequest& request, TokenChoice tokens) {
  const auto n_target = static_cast<int64_t>(request.target.size());
  return tokens == TokenChoice::kAnswer ? n_target : static_cast<int64_t>(request.prompt.size()) + n_target - 1;
}

int64_t first_layer(std::span<const WeightId> weights) {
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const WeightId& id : weights) first = std::min(first, id.layer);
  return first;
}

TextBatch::TextBatch(const CausalLM& model, std::span<const TokenizedRequest> requests, int64_t first_layer,
                     TrainingObjective objective)
    : model_(model), first_layer_(first_layer) {
  const torch::NoGradGuard no_grad;
  const bool is_forced = objective == TrainingObjective::kTarget;
  std::vector<std::vector<TokenId>> rows;
  for (const TokenizedRequest& request : requests) {
    rows.push_back(request.prompt);
    if (is_forced) rows.back().insert(rows.back().end(), request.target.begin(), request.target.end() - 1);
    prompt_sizes_.push_back(static_cast<int64_t>(request.prompt.size()));
    target_sizes_.push_back(static_cast<int64_t>(request.target.size()));
  }
  batch_ = make_batch(rows);
  hidden_BTD_ = model.run_layers(model.embed(batch_.ids_BT, batch_.sequence), batch_.sequence, {0, first_layer});
  std::vector<int64_t> positions, ids, owners;
  for (size_t i = 0; i < requests.size(); ++i) {
    for (size_t j = 0; j < requests[i].target.size(); ++j) {
      const int64_t at = prompt_sizes_[i] - 1 + (is_forced ? static_cast<int64_t>(j) : 0);
      positions.push_back(static_cast<int64_t>(i) * batch_.ids_BT.size(1) + at);
      ids.push_back(requests[i].target[j]);
      owners.push_back(static_cast<int64_t>(i));
    }
  }
  const at::Device head = model.placement().head_device();
  position_L_ = to_index(positions, head);
  id_L_ = to_index(ids, head);
  row_L_ = to_index(owners, head);
}

Tensor TextBatch::losses(const HookSet& hooks) const {
  const Tensor last_BTD =
      model_.run_layers(hidden_BTD_, batch_.sequence, {first_layer_, model_.config().n_layers}, hooks);
  const Tensor logits_LV = model_.logits(last_BTD.flatten(0, 1).index_select(0, position_L_));
  const Tensor log_probs_LV = torch::log_softmax(logits_LV.to(model_.placement().value_dtype()), 1);
  const Tensor label_L = log_probs_LV.gather(1, id_L_.unsqueeze(1)).squeeze(1);
  const Tensor size_N = torch::tensor(target_sizes_, torch::kLong).to(label_L.device(), label_L.scalar_type());
  const Tensor none_N = torch::zeros({size_N.size(0)}, label_L.options());
  return -none_N.index_add(0, row_L_, label_L) / size_N;
}

std::vector<int64_t> TextBatch::places(TokenChoice tokens) const {
  std::vector<int64_t> places;
  for (size_t i = 0; i < prompt_sizes_.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) * batch_.ids_BT.size(1);
    const int64_t first = tokens == TokenChoice::kAnswer ? prompt_sizes_[i] - 1 : 0;
    for (int64_t t = first; t < batch_.sequence.lengths[i]; ++t) places.push_back(row + t);
  }
  return places;
}

}  // namespace lancet
