#include "value_batch.h"

#include <torch/types.h>

#include <algorithm>
#include <numeric>

#include "lancet/edit/value_memory.h"

namespace lancet {
namespace {

Tensor index_tensor(const std::vector<int64_t>& values, at::Device device) {
  return torch::tensor(values, torch::kLong).to(device);
}

/// Every request in some contexts, with the target spliced behind; the last target id is only predicted.
SuffixRows context_rows(const CausalLM& model, const std::vector<const PreparedRequest*>& requests,
                        const std::vector<int64_t>& contexts, int64_t layer) {
  std::vector<std::vector<TokenId>> ids;
  std::vector<int64_t> lookups;
  for (const PreparedRequest* request : requests) {
    for (const int64_t context : contexts) {
      const LocatedPrompt& prompt = request->prompts[static_cast<size_t>(context)];
      ids.push_back(prompt.ids);
      ids.back().insert(ids.back().end(), request->target.begin(), request->target.end() - 1);
      lookups.push_back(prompt.lookup);
    }
  }
  return {model, ids, lookups, layer};
}

/// "{subject} is a": only the distribution at the lookup token matters.
SuffixRows drift_rows(const CausalLM& model, const std::vector<const PreparedRequest*>& requests, int64_t layer) {
  std::vector<std::vector<TokenId>> ids;
  std::vector<int64_t> lookups;
  for (const PreparedRequest* request : requests) {
    const LocatedPrompt& drift = request->drift;
    ids.emplace_back(drift.ids.begin(), drift.ids.begin() + drift.lookup + 1);
    lookups.push_back(drift.lookup);
  }
  return {model, ids, lookups, layer};
}

/// Rows of requests that each have `each` of them.
std::vector<int64_t> rows_of(const std::vector<int64_t>& requests, int64_t each) {
  std::vector<int64_t> rows;
  for (const int64_t request : requests)
    for (int64_t r = 0; r < each; ++r) rows.push_back(request * each + r);
  return rows;
}

}  // namespace

SuffixRows::SuffixRows(const CausalLM& model, std::span<const std::vector<TokenId>> ids,
                       std::span<const int64_t> lookups, int64_t layer)
    : layer_(layer) {
  const torch::NoGradGuard no_grad;
  const LayerRange above{layer + 1, model.config().n_layers};
  TokenBatch batch = make_batch(ids);
  const Tensor hidden_RTD = model.run_layers(model.embed(batch.ids_BT), batch.sequence, {0, layer + 1});

  int64_t width = 0;
  for (size_t row = 0; row < ids.size(); ++row) {
    suffix_.lengths.push_back(static_cast<int64_t>(ids[row].size()) - lookups[row]);
    width = std::max(width, suffix_.lengths.back());
  }
  const int64_t prefix_width = *std::max_element(lookups.begin(), lookups.end());
  if (prefix_width > 0) {
    SequenceInfo before = batch.sequence;
    before.lengths.assign(lookups.begin(), lookups.end());
    before.positions_BT = before.positions_BT.slice(1, 0, prefix_width);
    before.record = &prefix_;
    // of the last layer nothing but keys and values is wanted
    before.outputs_BO = torch::zeros({static_cast<int64_t>(ids.size()), 1}, torch::kLong);
    HookSet hooks;
    hooks.stop_at({HookPoint::kAttnOut, above.end - 1});
    model.run_layers(hidden_RTD.slice(1, 0, prefix_width), before, above, hooks);
  }
  const Tensor lookup_R1 =
      torch::tensor(std::vector<int64_t>(lookups.begin(), lookups.end()), torch::kLong).unsqueeze(1);
  suffix_.positions_BT = lookup_R1 + torch::arange(width);
  // Places behind a row's end repeat its last token; nothing reads them.
  const Tensor place_RT = suffix_.positions_BT.clamp_max(hidden_RTD.size(1) - 1).to(hidden_RTD.device());
  hidden_RTD_ = hidden_RTD.gather(1, place_RT.unsqueeze(2).expand({-1, -1, hidden_RTD.size(2)}));
}

SuffixRows SuffixRows::select(const std::vector<int64_t>& rows) const {
  const Tensor index = torch::tensor(rows, torch::kLong);
  const auto take = [&](const Tensor& tensor) {
    return tensor.defined() ? tensor.index_select(0, index.to(tensor.device())) : Tensor();
  };
  SuffixRows some;
  some.layer_ = layer_;
  some.hidden_RTD_ = take(hidden_RTD_);
  for (const int64_t row : rows) some.suffix_.lengths.push_back(suffix_.lengths[static_cast<size_t>(row)]);
  some.suffix_.positions_BT = take(suffix_.positions_BT);
  some.prefix_.valid_BP = take(prefix_.valid_BP);
  for (const Tensor& keys : prefix_.keys_BKPC) some.prefix_.keys_BKPC.push_back(take(keys));
  for (const Tensor& values : prefix_.values_BKPC) some.prefix_.values_BKPC.push_back(take(values));
  return some;
}

Tensor SuffixRows::run(const CausalLM& model, const Tensor& added_RD, const Tensor& outputs_RO) const {
  SequenceInfo sequence = suffix_;
  sequence.outputs_BO = outputs_RO;
  if (!prefix_.empty()) sequence.prefix = &prefix_;
  const Tensor first_R1D = (hidden_RTD_.select(1, 0) + added_RD.to(hidden_RTD_.scalar_type())).unsqueeze(1);
  const Tensor moved_RTD = width() == 1 ? first_R1D : torch::cat({first_R1D, hidden_RTD_.slice(1, 1)}, 1);
  return model.run_layers(moved_RTD, sequence, {layer_ + 1, model.config().n_layers});
}

ValueBatch::ValueBatch(const CausalLM& model, std::vector<const PreparedRequest*> requests, int64_t layer,
                       int64_t contexts_per_step)
    : model_(model),
      requests_(std::move(requests)),
      resident_(requests_.size()),
      drift_(drift_rows(model, requests_, layer)) {
  std::iota(resident_.begin(), resident_.end(), int64_t{0});
  const int64_t n_contexts = static_cast<int64_t>(requests_[0]->prompts.size());
  const int64_t n_groups = value_groups(n_contexts, contexts_per_step);
  for (int64_t group = 0; group < n_groups; ++group) {
    std::vector<int64_t> contexts;
    for (int64_t context = group; context < n_contexts; context += n_groups) contexts.push_back(context);
    SuffixRows rows = context_rows(model, requests_, contexts, layer);
    Labels labels = make_labels(contexts);
    groups_.push_back({std::move(contexts), std::move(rows), std::move(labels)});
  }
  initial_ND_ = groups_[0]
                    .rows.lookup_hidden()
                    .unflatten(0, {-1, static_cast<int64_t>(groups_[0].contexts.size())})
                    .select(1, 0)
                    .to(model.placement().value_dtype(), /*non_blocking=*/false, /*copy=*/true);
}

ValueBatch::Labels ValueBatch::make_labels(const std::vector<int64_t>& contexts) const {
  const int64_t n_contexts = static_cast<int64_t>(contexts.size());
  int64_t n_outputs = 0;
  for (const int64_t index : resident_)
    n_outputs = std::max(n_outputs, static_cast<int64_t>(requests_[static_cast<size_t>(index)]->target.size()));
  std::vector<int64_t> outputs, positions, ids, owners;
  std::vector<double> weights;
  for (size_t a = 0; a < resident_.size(); ++a) {
    const PreparedRequest& request = *requests_[static_cast<size_t>(resident_[a])];
    const double weight = 1.0 / static_cast<double>(static_cast<int64_t>(request.target.size()) * n_contexts);
    for (int64_t r = 0; r < n_contexts; ++r) {
      const LocatedPrompt& prompt = request.prompts[static_cast<size_t>(contexts[static_cast<size_t>(r)])];
      // the prompt's last token predicts target[0]
      const int64_t first = static_cast<int64_t>(prompt.ids.size()) - 1 - prompt.lookup;
      // shorter targets repeat their last place
      for (int64_t j = 0; j < n_outputs; ++j)
        outputs.push_back(first + std::min(j, static_cast<int64_t>(request.target.size()) - 1));
      for (size_t j = 0; j < request.target.size(); ++j) {
        positions.push_back((static_cast<int64_t>(a) * n_contexts + r) * n_outputs + static_cast<int64_t>(j));
        ids.push_back(request.target[j]);
        owners.push_back(static_cast<int64_t>(a));
        weights.push_back(weight);
      }
    }
  }
  const at::Device head = model_.placement().head_device();
  return {torch::tensor(outputs, torch::kLong).view({-1, n_outputs}), index_tensor(positions, head),
          index_tensor(ids, head), index_tensor(owners, head),
          torch::tensor(weights, torch::kDouble).to(head, model_.placement().value_dtype())};
}

void ValueBatch::keep(const std::vector<int64_t>& kept) {
  drift_ = drift_.select(kept);
  drift_log_probs_AV_ = drift_log_probs_AV_.index_select(0, index_tensor(kept, drift_log_probs_AV_.device()));
  std::vector<int64_t> resident;
  for (const int64_t index : kept) resident.push_back(resident_[static_cast<size_t>(index)]);
  resident_ = std::move(resident);
  for (ContextGroup& group : groups_) {
    group.rows = group.rows.select(rows_of(kept, static_cast<int64_t>(group.contexts.size())));
    group.labels = make_labels(group.contexts);
  }
}

Tensor ValueBatch::log_probs(const Tensor& last_MD) const {
  return torch::log_softmax(model_.logits(last_MD).to(model_.placement().value_dtype()), -1);
}

BatchLosses ValueBatch::losses(const Tensor& delta_AD) {
  const ContextGroup& group = groups_[next_];
  next_ = (next_ + 1) % groups_.size();
  const Labels& labels = group.labels;
  const Tensor added_RD = delta_AD.repeat_interleave(static_cast<int64_t>(group.contexts.size()), 0);
  const Tensor last_ROD = group.rows.run(model_, added_RD, labels.outputs_RO);
  const Tensor label_log_probs = log_probs(last_ROD.flatten(0, 1).index_select(0, labels.position_L))
                                     .gather(1, labels.id_L.unsqueeze(1))
                                     .squeeze(1) *
                                 labels.weight_L;
  BatchLosses losses;
  losses.nll_A =
      -torch::zeros({delta_AD.size(0)}, label_log_probs.options()).index_add(0, labels.request_L, label_log_probs);

  const Tensor now_AV = log_probs(drift_.run(model_, delta_AD, /*outputs_RO=*/{}).squeeze(1));
  if (!drift_log_probs_AV_.defined()) drift_log_probs_AV_ = now_AV.detach().clone();
  losses.kl_A = (now_AV.exp() * (now_AV - drift_log_probs_AV_)).sum(1);
  return losses;
}

}  // namespace lancet
