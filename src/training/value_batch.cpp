#include "value_batch.h"

#include <torch/types.h>

#include <algorithm>
#include <numeric>

#include "lancet/models/target_places.h"
#include "lancet/training/activations.h"
#include "lancet/training/value_memory.h"

namespace lancet {
namespace {

/// Every request in some contexts.
SuffixRows::Rows context_rows(const std::vector<const PreparedRequest*>& requests,
                              const std::vector<int64_t>& contexts) {
  SuffixRows::Rows rows;
  for (const PreparedRequest* request : requests) {
    for (const int64_t context : contexts) {
      const LocatedPrompt& row = request->rows[static_cast<size_t>(context)];
      rows.ids.push_back(row.ids);
      rows.lookups.push_back(row.lookup);
    }
  }
  return rows;
}

/// "{subject} is a": only the distribution at the lookup token matters.
SuffixRows::Rows drift_rows(const std::vector<const PreparedRequest*>& requests) {
  SuffixRows::Rows rows;
  for (const PreparedRequest* request : requests) {
    const LocatedPrompt& drift = request->drift;
    rows.ids.emplace_back(drift.ids.begin(), drift.ids.begin() + drift.lookup + 1);
    rows.lookups.push_back(drift.lookup);
  }
  return rows;
}

/// Rows of requests that each have `each` of them.
std::vector<int64_t> rows_of(const std::vector<int64_t>& requests, int64_t each) {
  std::vector<int64_t> rows;
  for (const int64_t request : requests)
    for (int64_t r = 0; r < each; ++r) rows.push_back(request * each + r);
  return rows;
}

/// `value_RTD` with `added_RD` added at each row's first place.
Tensor with_first_moved(const Tensor& value_RTD, const Tensor& added_RD) {
  const Tensor first_R1D = (value_RTD.select(1, 0) + added_RD.to(value_RTD.scalar_type())).unsqueeze(1);
  return value_RTD.size(1) == 1 ? first_R1D : torch::cat({first_R1D, value_RTD.slice(1, 1)}, 1);
}

}  // namespace

int64_t vectors_of(ValueSite site) { return site == ValueSite::kMlpAndAttnOut ? 2 : 1; }

SuffixRows::SuffixRows(const CausalLM& model, const Rows& rows, ValueSite site, int64_t layer)
    : site_(site), first_layer_(site == ValueSite::kMlpAndAttnOut ? layer : layer + 1) {
  const torch::NoGradGuard no_grad;
  const std::vector<std::vector<TokenId>>& ids = rows.ids;
  const std::vector<int64_t>& lookups = rows.lookups;
  const LayerRange above{first_layer_, model.config().n_layers};
  TokenBatch batch = make_batch(ids);
  const Tensor hidden_RTD = model.run_layers(model.embed(batch.ids_BT), batch.sequence, {0, first_layer_});

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
  const Tensor lookup_R1 = torch::tensor(lookups, torch::kLong).unsqueeze(1);
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
  some.site_ = site_;
  some.first_layer_ = first_layer_;
  some.hidden_RTD_ = take(hidden_RTD_);
  for (const int64_t row : rows) some.suffix_.lengths.push_back(suffix_.lengths[static_cast<size_t>(row)]);
  some.suffix_.positions_BT = take(suffix_.positions_BT);
  some.prefix_ = prefix_.select(rows);
  return some;
}

Tensor SuffixRows::run(const CausalLM& model, const Tensor& added_RX, const Tensor& outputs_RO) const {
  SequenceInfo sequence = suffix_;
  sequence.outputs_BO = outputs_RO;
  if (!prefix_.empty()) sequence.prefix = &prefix_;
  const LayerRange above{first_layer_, model.config().n_layers};
  // the MLP's output is a term of the layer's, so both sites are moved there
  if (site_ != ValueSite::kMlpAndAttnOut)
    return model.run_layers(with_first_moved(hidden_RTD_, added_RX), sequence, above);
  const std::vector<Tensor> added = added_RX.chunk(2, 1);
  HookSet hooks;
  hooks.replace({HookPoint::kMlpOut, first_layer_}, [&](const Tensor& x) { return with_first_moved(x, added[0]); });
  hooks.replace({HookPoint::kAttnOut, first_layer_}, [&](const Tensor& x) { return with_first_moved(x, added[1]); });
  return model.run_layers(hidden_RTD_, sequence, above, hooks);
}

ValueBatch::ValueBatch(const CausalLM& model, std::vector<const PreparedRequest*> requests, int64_t layer,
                       const ValueOptions& options)
    : model_(model),
      requests_(std::move(requests)),
      resident_(requests_.size()),
      drift_(model, drift_rows(requests_), options.site, layer) {
  std::iota(resident_.begin(), resident_.end(), int64_t{0});
  const int64_t n_contexts = static_cast<int64_t>(requests_[0]->prompts.size());
  const int64_t n_groups = value_groups(n_contexts, options.contexts_per_step);
  for (int64_t group = 0; group < n_groups; ++group) {
    std::vector<int64_t> contexts;
    for (int64_t context = group; context < n_contexts; context += n_groups) contexts.push_back(context);
    SuffixRows rows(model, context_rows(requests_, contexts), options.site, layer);
    Labels labels = make_labels(contexts);
    groups_.push_back({std::move(contexts), std::move(rows), std::move(labels)});
  }
  initial_NX_ =
      initial_values(options.site, layer).to(model.placement().value_dtype(), /*non_blocking=*/false, /*copy=*/true);
}

Tensor ValueBatch::initial_values(ValueSite site, int64_t layer) const {
  const ContextGroup& first = groups_[0];
  if (site == ValueSite::kBlockOut)
    return first.rows.lookup_hidden().unflatten(0, {-1, static_cast<int64_t>(first.contexts.size())}).select(1, 0);
  std::vector<const LocatedPrompt*> plain;
  for (const PreparedRequest* request : requests_) plain.push_back(&request->prompts[0]);
  SingleProcess own;  // a batch is one rank's, and one thread's
  const Tensor mlp_ND = collect_at(model_, plain, {HookPoint::kMlpOut, layer}, own);
  if (site == ValueSite::kMlpOut) return mlp_ND;
  return torch::cat({mlp_ND, collect_at(model_, plain, {HookPoint::kAttnOut, layer}, own)}, 1);
}

ValueBatch::Labels ValueBatch::make_labels(const std::vector<int64_t>& contexts) const {
  std::vector<RowTarget> rows;
  for (const int64_t index : resident_) {
    const PreparedRequest& request = *requests_[static_cast<size_t>(index)];
    for (const int64_t context : contexts) {
      const LocatedPrompt& row = request.rows[static_cast<size_t>(context)];
      rows.push_back({static_cast<int64_t>(row.ids.size() - request.target.size()) - row.lookup, request.target});
    }
  }
  const TargetPlaces places = target_places(rows);
  std::vector<int64_t> owners;
  std::vector<double> weights;
  for (const int64_t row : places.rows) {
    owners.push_back(row / static_cast<int64_t>(contexts.size()));
    weights.push_back(1.0 / static_cast<double>(rows[static_cast<size_t>(row)].target.size() * contexts.size()));
  }
  const at::Device head = model_.placement().head_device();
  return {places.outputs_BO, to_index(places.positions, head), to_index(places.ids, head), to_index(owners, head),
          torch::tensor(weights, torch::kDouble).to(head, model_.placement().value_dtype())};
}

void ValueBatch::keep(const std::vector<int64_t>& kept) {
  drift_ = drift_.select(kept);
  drift_log_probs_AV_ = drift_log_probs_AV_.index_select(0, to_index(kept, drift_log_probs_AV_.device()));
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

BatchLosses ValueBatch::losses(const Tensor& delta_AX, ValueWatch watch) {
  const ContextGroup& group = groups_[next_];
  next_ = (next_ + 1) % groups_.size();
  const Labels& labels = group.labels;
  const Tensor added_RX = delta_AX.repeat_interleave(static_cast<int64_t>(group.contexts.size()), 0);
  const Tensor last_ROD = group.rows.run(model_, added_RX, labels.outputs_RO);
  const Tensor log_probs_LV = log_probs(last_ROD.flatten(0, 1).index_select(0, labels.position_L));
  const Tensor label_log_probs = log_probs_LV.gather(1, labels.id_L.unsqueeze(1)).squeeze(1);
  const Tensor none_A = torch::zeros({delta_AX.size(0)}, label_log_probs.options());
  BatchLosses losses;
  losses.nll_A = -none_A.index_add(0, labels.request_L, label_log_probs * labels.weight_L);
  if (watch == ValueWatch::kMissedTokens) {
    const Tensor missed_L = (log_probs_LV.detach().amax(1) > label_log_probs.detach()).to(none_A.scalar_type());
    losses.missed_A = none_A.index_add(0, labels.request_L, missed_L);
  }

  const Tensor now_AV = log_probs(drift_.run(model_, delta_AX, /*outputs_RO=*/{}).squeeze(1));
  if (!drift_log_probs_AV_.defined()) drift_log_probs_AV_ = now_AV.detach().clone();
  losses.kl_A = (now_AV.exp() * (now_AV - drift_log_probs_AV_)).sum(1);
  return losses;
}

}  // namespace lancet
