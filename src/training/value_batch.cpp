#include "value_batch.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "lancet/kernels/linear.h"
#include "lancet/models/batching.h"
#include "lancet/runtime/send.h"
#include "lancet/training/activations.h"
#include "lancet/training/value_memory.h"

namespace lancet {
namespace {

void add_row(const PreparedRequest& request, const LocatedPrompt& row, TokenRows& rows) {
  rows.ids.push_back(row.ids);
  rows.lookups.push_back(row.lookup);
  rows.held.push_back(request.held);
}

/// Returns "{subject} is a" up to the lookup token. Only the distribution there is needed.
LocatedPrompt drift_row(const PreparedRequest& request) {
  const LocatedPrompt& drift = request.drift;
  return {{drift.ids.begin(), drift.ids.begin() + drift.lookup + 1}, drift.lookup};
}

/// Returns the rows of all requests together when only some are kept: the rows of their contexts, their own drift rows,
/// and their kept prompts. `of_each`: the numbers of a request's rows of the last two kinds.
std::vector<int64_t> rows_of(const std::vector<int64_t>& kept, int64_t contexts,
                             const std::vector<std::array<int64_t, 2>>& of_each) {
  std::vector<int64_t> rows;
  for (const int64_t request : kept)
    for (int64_t context = 0; context < contexts; ++context) rows.push_back(request * contexts + context);
  int64_t row = static_cast<int64_t>(of_each.size()) * contexts;
  for (const size_t kind : {size_t{0}, size_t{1}}) {
    auto next_kept = kept.begin();
    for (size_t request = 0; request < of_each.size(); ++request) {
      const bool is_kept = next_kept != kept.end() && *next_kept == static_cast<int64_t>(request);
      if (is_kept) ++next_kept;
      for (int64_t i = 0; i < of_each[request][kind]; ++i, ++row)
        if (is_kept) rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace

ValueBatch::ValueBatch(const CausalLM& model, std::vector<const PreparedRequest*> requests, int64_t layer,
                       const ValueOptions& options)
    : model_(model),
      requests_(std::move(requests)),
      edited_device_(model.placement().device_of(layer)),
      resident_(requests_.size()) {
  std::iota(resident_.begin(), resident_.end(), int64_t{0});
  const int64_t n_contexts = static_cast<int64_t>(requests_[0]->prompts.size());
  const int64_t n_groups = value_groups(n_contexts, options.contexts_per_step);
  for (int64_t group = 0; group < n_groups; ++group)
    groups_.push_back(make_group(contexts_of_group(group, n_groups, n_contexts), options.site, layer));
  initial_NX_ =
      initial_values(options.site, layer).to(model.placement().value_dtype(), /*non_blocking=*/false, /*copy=*/true);
}

ValueBatch::ContextGroup ValueBatch::make_group(std::vector<int64_t> contexts, ValueSite site, int64_t layer) const {
  TokenRows rows, drift_rows, kept_rows;
  std::vector<std::optional<int64_t>> drift_context;
  for (const PreparedRequest* request : requests_) {
    for (const int64_t context : contexts) add_row(*request, request->rows[static_cast<size_t>(context)], rows);
    drift_context.push_back(row_with_drift(*request, contexts));
    if (!drift_context.back()) add_row(*request, drift_row(*request), drift_rows);
    for (const LocatedPrompt& prompt : request->kept) add_row(*request, prompt, kept_rows);
  }
  for (TokenRows* more : {&drift_rows, &kept_rows}) {
    std::ranges::move(more->ids, std::back_inserter(rows.ids));
    std::ranges::move(more->lookups, std::back_inserter(rows.lookups));
    std::ranges::move(more->held, std::back_inserter(rows.held));
  }
  ContextGroup group{std::move(contexts), std::move(drift_context), SuffixRows(model_, rows, site, layer), {}};
  set_labels(group);
  return group;
}

Tensor ValueBatch::initial_values(ValueSite site, int64_t layer) const {
  const ContextGroup& first = groups_[0];
  const auto n_contexts = static_cast<int64_t>(first.contexts.size()), n = static_cast<int64_t>(requests_.size());
  if (site == ValueSite::kBlockOut)
    return first.rows.lookup_hidden().narrow(0, 0, n * n_contexts).unflatten(0, {n, n_contexts}).select(1, 0);
  std::vector<const LocatedPrompt*> plain;
  for (const PreparedRequest* request : requests_) plain.push_back(&request->prompts[0]);
  SingleProcess own;  // a batch belongs to one rank and one thread
  const Tensor mlp_ND = collect_at(model_, plain, {HookPoint::kMlpOut, layer}, own);
  if (site == ValueSite::kMlpOut) return mlp_ND;
  return torch::cat({mlp_ND, collect_at(model_, plain, {HookPoint::kAttnOut, layer}, own)}, 1);
}

void ValueBatch::set_labels(ContextGroup& group) const {
  const auto n_contexts = static_cast<int64_t>(group.contexts.size());
  std::vector<RowTarget> rows;
  std::vector<int64_t> more;  // the requests of the rows after those of the contexts
  size_t n_slots = 0;
  for (size_t a = 0; a < resident_.size(); ++a) {
    const PreparedRequest& request = *requests_[static_cast<size_t>(resident_[a])];
    const std::optional<int64_t> drift = group.drift_context[static_cast<size_t>(resident_[a])];
    size_t n_labels = 0;
    for (int64_t c = 0; c < n_contexts; ++c) {
      const TargetRow& row = request.rows[static_cast<size_t>(group.contexts[static_cast<size_t>(c)])];
      rows.push_back({static_cast<int64_t>(row.ids.size() - row.target.size()) - row.lookup, row.target,
                      /*also=*/drift == c ? std::optional<int64_t>(0) : std::nullopt});
      n_labels += row.target.size();
    }
    if (!drift) more.push_back(static_cast<int64_t>(a));
    n_slots = std::max(n_slots, n_labels);
  }
  const size_t n_own_drift = more.size();
  rows.resize(rows.size() + n_own_drift, {.first_place = 0, .target = {}, .also = 0});
  for (size_t a = 0; a < resident_.size(); ++a)
    for (const LocatedPrompt& prompt : requests_[static_cast<size_t>(resident_[a])]->kept) {
      rows.push_back({.first_place = 0, .target = {}, .also = std::ssize(prompt.ids) - 1 - prompt.lookup});
      more.push_back(static_cast<int64_t>(a));
    }
  const TargetPlaces places = target_places(rows);

  // the drift positions of requests without a row of their own come first, and those of kept prompts last
  std::vector<int64_t> read = places.positions;
  size_t shared = 0, own = resident_.size() - n_own_drift;
  for (const int64_t request : resident_)
    read.push_back(places.also[group.drift_context[static_cast<size_t>(request)] ? shared++ : own++]);
  read.insert(read.end(), places.also.begin() + static_cast<int64_t>(resident_.size()), places.also.end());

  std::vector<int64_t> slots, filled(resident_.size());
  std::vector<double> weights(resident_.size() * n_slots);
  for (const int64_t row : places.rows) {
    const auto a = static_cast<size_t>(row / n_contexts);
    slots.push_back(static_cast<int64_t>(a * n_slots) + filled[a]++);
    weights[static_cast<size_t>(slots.back())] =
        1.0 / static_cast<double>(rows[static_cast<size_t>(row)].target.size() * group.contexts.size());
  }
  const at::Device head = model_.placement().head_device();
  group.labels = {to_index(read, head),
                  to_index(places.ids, head),
                  to_index(slots, head),
                  sent_to(head, torch::tensor(weights, torch::kDouble)
                                    .view({static_cast<int64_t>(resident_.size()), static_cast<int64_t>(n_slots)})
                                    .to(model_.placement().value_dtype())),
                  more.empty() ? Tensor() : to_index(more, edited_device_),
                  kept_weights(std::span(more).subspan(n_own_drift))};
  group.rows.read_at(model_, places.outputs);
}

Tensor ValueBatch::kept_weights(std::span<const int64_t> requests_K) const {
  if (requests_K.empty()) return {};
  const auto n_kept = static_cast<int64_t>(requests_K.size()), n = static_cast<int64_t>(resident_.size());
  std::vector<double> weights(static_cast<size_t>(n * n_kept));
  for (int64_t k = 0; k < n_kept; ++k) {
    const int64_t request = requests_K[static_cast<size_t>(k)];
    weights[static_cast<size_t>(request * n_kept + k)] =
        1.0 / static_cast<double>(std::ranges::count(requests_K, request));
  }
  return sent_to(model_.placement().head_device(),
                 torch::tensor(weights, torch::kDouble).view({n, n_kept}).to(model_.placement().value_dtype()));
}

void ValueBatch::keep(const std::vector<int64_t>& kept) {
  drift_log_probs_AV_ = drift_log_probs_AV_.index_select(0, to_index(kept, drift_log_probs_AV_.device()));
  std::vector<std::array<int64_t, 2>> prompts;
  for (const int64_t request : resident_)
    prompts.push_back({0, std::ssize(requests_[static_cast<size_t>(request)]->kept)});
  if (kept_log_probs_KV_.defined())
    kept_log_probs_KV_ =
        kept_log_probs_KV_.index_select(0, to_index(rows_of(kept, 0, prompts), kept_log_probs_KV_.device()));
  const std::vector<int64_t> before = resident_;
  resident_.clear();
  for (const int64_t index : kept) resident_.push_back(before[static_cast<size_t>(index)]);
  for (ContextGroup& group : groups_) {
    std::vector<std::array<int64_t, 2>> of_each = prompts;
    for (size_t i = 0; i < before.size(); ++i)
      of_each[i][0] = group.drift_context[static_cast<size_t>(before[i])] ? 0 : 1;
    group.rows = group.rows.select(rows_of(kept, static_cast<int64_t>(group.contexts.size()), of_each));
    set_labels(group);
  }
}

BatchLosses ValueBatch::losses(size_t of_group, const Tensor& delta_AX, ValueWatch watch) {
  const ContextGroup& group = groups_[of_group];
  const Labels& labels = group.labels;
  Tensor added_RX = delta_AX.repeat_interleave(static_cast<int64_t>(group.contexts.size()), 0);
  if (labels.more_E.defined()) added_RX = torch::cat({added_RX, delta_AX.index_select(0, labels.more_E)});
  const Tensor last_OD = group.rows.run(model_, added_RX);
  const int64_t n_requests = delta_AX.size(0), n_labels = labels.id_L.size(0);
  const int64_t n_kept = labels.kept_AK.defined() ? labels.kept_AK.size(1) : 0;
  const std::vector<Tensor> logits_LV_AV_KV =
      model_.logits(last_OD.index_select(0, labels.read_M)).split_with_sizes({n_labels, n_requests, n_kept});
  const bool watches = watch == ValueWatch::kMissedTokens;
  const TokenLosses tokens =
      token_losses(logits_LV_AV_KV[0], labels.id_L, watches ? LossExtra::kGreatest : LossExtra::kNone);
  const auto divergence = [&](const Tensor& logits_NV, Tensor& before_NV) {
    const Tensor now_NV = torch::log_softmax(logits_NV.to(labels.weight_AS.scalar_type()), -1);
    if (!before_NV.defined()) before_NV = now_NV.detach().clone();
    return (now_NV.exp() * (now_NV - before_NV)).sum(1);
  };
  // uses slots, and not index_add, which adds in any order on a GPU
  const auto by_request = [&](const Tensor& values_L) {
    return torch::zeros_like(labels.weight_AS)
        .flatten()
        .index_copy(0, labels.slot_L, values_L)
        .view_as(labels.weight_AS);
  };
  BatchLosses losses;
  losses.nll_A = (by_request(tokens.loss_N) * labels.weight_AS).sum(1);
  if (watches) {
    const Tensor missed_L = tokens.greatest_N > -tokens.loss_N.detach();
    losses.missed_A = by_request(missed_L.to(labels.weight_AS.scalar_type())).sum(1);
  }
  losses.kl_A = divergence(logits_LV_AV_KV[1], drift_log_probs_AV_);
  if (n_kept > 0) losses.kept_A = (labels.kept_AK * divergence(logits_LV_AV_KV[2], kept_log_probs_KV_)).sum(1);
  return losses;
}

}  // namespace lancet
