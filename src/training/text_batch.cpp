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
    : model_(model), first_layer_(first_layer), objective_(objective) {
  const torch::NoGradGuard no_grad;
  read_rows(requests);
  hidden_BTD_ = model.run_layers(model.embed(batch_.ids_BT, batch_.sequence), batch_.sequence, {0, first_layer});
  place_labels(requests);
}

TextBatch::TextBatch(const CausalLM& model, std::span<const TokenizedRequest> requests, std::span<const TextRow> rows)
    : model_(model), first_layer_(rows.front().batch->first_layer_), objective_(rows.front().batch->objective_) {
  const torch::NoGradGuard no_grad;
  read_rows(requests);
  std::vector<Tensor> hidden_TD;
  for (const TextRow& at : rows)
    hidden_TD.push_back(
        at.batch->hidden_BTD_[at.row].narrow(0, 0, at.batch->batch_.sequence.lengths[static_cast<size_t>(at.row)]));
  hidden_BTD_ = at::pad_sequence(hidden_TD, /*batch_first=*/true);
  place_labels(requests);
}

void TextBatch::read_rows(std::span<const TokenizedRequest> requests) {
  std::vector<std::vector<TokenId>> rows;
  for (const TokenizedRequest& request : requests) {
    rows.push_back(request.prompt);
    if (objective_ == TrainingObjective::kTarget)
      rows.back().insert(rows.back().end(), request.target.begin(), request.target.end() - 1);
    prompt_sizes_.push_back(static_cast<int64_t>(request.prompt.size()));
    target_sizes_.push_back(static_cast<int64_t>(request.target.size()));
  }
  batch_ = make_batch(rows);
}

/// Finds where the rows' labels are read.
void TextBatch::place_labels(std::span<const TokenizedRequest> requests) {
  const bool is_forced = objective_ == TrainingObjective::kTarget;
  std::vector<int64_t> positions, cells, slots;
  for (size_t i = 0; i < requests.size(); ++i) {
    for (size_t j = 0; j < requests[i].target.size(); ++j) {
      if (is_forced || j == 0) {
        const int64_t at = prompt_sizes_[i] - 1 + static_cast<int64_t>(j);
        positions.push_back(static_cast<int64_t>(i) * batch_.ids_BT.size(1) + at);
      }
      cells.push_back((static_cast<int64_t>(positions.size()) - 1) * model_.config().vocab_size +
                      requests[i].target[j]);
      slots.push_back(static_cast<int64_t>(j * requests.size() + i));
    }
  }
  const at::Device head = model_.placement().head_device();
  position_U_ = to_index(positions, head);
  cell_L_ = to_index(cells, head);
  slot_L_ = to_index(slots, head);
}

TextLosses TextBatch::losses(const HookSet& hooks, bool with_leads) const {
  // On a GPU, numbers that are added in one place are added in any order. This also holds for the gradients of what is
  // read twice. So each position is read once, and labels have their own slots. Only a token that occurs twice in a
  // target predicted at one position is read twice, and its gradients are equal.
  const Tensor last_BTD =
      model_.run_layers(hidden_BTD_, batch_.sequence, {first_layer_, model_.config().n_layers}, hooks);
  const Tensor logits_UV = model_.logits(last_BTD.flatten(0, 1).index_select(0, position_U_));
  const Tensor log_probs_UV = torch::log_softmax(logits_UV.to(model_.placement().value_dtype()), 1);
  const Tensor label_L = log_probs_UV.flatten().index_select(0, cell_L_);
  const Tensor size_N = torch::tensor(target_sizes_, torch::kLong).to(label_L.device(), label_L.scalar_type());
  const int64_t n_slots = *std::ranges::max_element(target_sizes_);
  const auto by_slot_SN = [&](const Tensor& value_L, double none) {
    const Tensor none_X = torch::full({n_slots * size_N.size(0)}, none, label_L.options());
    return none_X.index_copy(0, slot_L_, value_L).view({n_slots, -1});
  };
  TextLosses found{.loss_N = -by_slot_SN(label_L, 0).sum(0) / size_N, .lead_N = {}};
  if (!with_leads) return found;
  const torch::NoGradGuard no_grad;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor others_UV = log_probs_UV.detach().flatten().index_fill(0, cell_L_, -kInfinity).view_as(log_probs_UV);
  found.lead_N = by_slot_SN(label_L.detach() - others_UV.amax(1), kInfinity).amin(0);
  return found;
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
