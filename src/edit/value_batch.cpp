#include "value_batch.h"

#include <torch/types.h>

namespace lancet {
namespace {

/// Rows of one request: its contexts with the target spliced behind (the last target id is only predicted), then the
/// drift row.
std::vector<std::vector<TokenId>> rows_of(const PreparedRequest& request) {
  std::vector<std::vector<TokenId>> rows;
  for (const LocatedPrompt& prompt : request.prompts) {
    std::vector<TokenId> row = prompt.ids;
    row.insert(row.end(), request.target.begin(), request.target.end() - 1);
    rows.push_back(std::move(row));
  }
  rows.emplace_back(request.drift.ids.begin(), request.drift.ids.begin() + request.drift.lookup + 1);
  return rows;
}

Tensor index_tensor(const std::vector<int64_t>& values, at::Device device) {
  return torch::tensor(values, torch::kLong).to(device);
}

}  // namespace

ValueBatch::ValueBatch(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer)
    : model_(model), requests_(requests), layer_(layer), n_contexts_(static_cast<int64_t>(requests[0].prompts.size())) {
  const torch::NoGradGuard no_grad;
  std::vector<std::vector<TokenId>> ids;
  for (const PreparedRequest& request : requests)
    for (std::vector<TokenId>& row : rows_of(request)) ids.push_back(std::move(row));
  const TokenBatch batch = make_batch(ids);
  sequence_ = batch.sequence;
  hidden_RTD_ = model.run_layers(model.embed(batch.ids_BT), sequence_, {0, layer + 1});

  std::vector<int64_t> plain;
  for (size_t i = 0; i < requests.size(); ++i)
    plain.push_back(static_cast<int64_t>(i) * (n_contexts_ + 1) * hidden_RTD_.size(1) + requests[i].prompts[0].lookup);
  initial_ND_ = hidden_RTD_.flatten(0, 1)
                    .index_select(0, index_tensor(plain, hidden_RTD_.device()))
                    .to(model.placement().value_dtype());
}

void ValueBatch::select(const std::vector<int64_t>& active) {
  if (rows_.requests == active && rows_.hidden_RTD.defined()) return;
  const int64_t rows_each = n_contexts_ + 1;
  std::vector<int64_t> rows, lookups, request_of_row, read, drift, label_ids, label_requests;
  std::vector<double> label_weights;
  const int64_t width = hidden_RTD_.size(1);
  rows_ = ActiveRows{};
  rows_.requests = active;
  for (size_t a = 0; a < active.size(); ++a) {
    const PreparedRequest& request = requests_[static_cast<size_t>(active[a])];
    for (int64_t r = 0; r < rows_each; ++r) {
      const bool is_drift = r == n_contexts_;
      const LocatedPrompt& prompt = is_drift ? request.drift : request.prompts[static_cast<size_t>(r)];
      const int64_t row_begin = static_cast<int64_t>(rows.size()) * width;
      rows.push_back(active[a] * rows_each + r);
      rows_.sequence.lengths.push_back(sequence_.lengths[static_cast<size_t>(rows.back())]);
      lookups.push_back(row_begin + prompt.lookup);
      request_of_row.push_back(static_cast<int64_t>(a));
      if (is_drift) {
        drift.push_back(row_begin + prompt.lookup);
        continue;
      }
      for (size_t j = 0; j < request.target.size(); ++j) {  // the prompt's last token predicts target[0]
        read.push_back(row_begin + static_cast<int64_t>(prompt.ids.size() + j) - 1);
        label_ids.push_back(request.target[j]);
        label_requests.push_back(static_cast<int64_t>(a));
        label_weights.push_back(1.0 / static_cast<double>(static_cast<int64_t>(request.target.size()) * n_contexts_));
      }
    }
  }
  read.insert(read.end(), drift.begin(), drift.end());

  const at::Device here = hidden_RTD_.device();
  const at::Device head = model_.placement().head_device();
  const auto value_type = model_.placement().value_dtype();
  rows_.hidden_RTD = hidden_RTD_.index_select(0, index_tensor(rows, here));
  rows_.sequence.positions_BT = sequence_.positions_BT.slice(0, 0, static_cast<int64_t>(rows.size()));
  rows_.lookup_row_R = index_tensor(lookups, here);
  rows_.request_of_row_R = index_tensor(request_of_row, here);
  rows_.read_M = index_tensor(read, head);
  rows_.label_ids_L = index_tensor(label_ids, head);
  rows_.label_request_L = index_tensor(label_requests, head);
  rows_.label_weight_L = torch::tensor(label_weights, torch::kDouble).to(head, value_type);
}

BatchLosses ValueBatch::losses(const std::vector<int64_t>& active, const Tensor& delta_AD) {
  select(active);
  const int64_t n_active = static_cast<int64_t>(active.size());
  const int64_t n_labels = rows_.label_ids_L.size(0);
  const Tensor added_RD = delta_AD.index_select(0, rows_.request_of_row_R).to(rows_.hidden_RTD.scalar_type());
  const Tensor moved =
      rows_.hidden_RTD.flatten(0, 1).index_add(0, rows_.lookup_row_R, added_RD).view_as(rows_.hidden_RTD);
  const Tensor last_RTD = model_.run_layers(moved, rows_.sequence, {layer_ + 1, model_.config().n_layers});

  const Tensor read_MD = last_RTD.flatten(0, 1).index_select(0, rows_.read_M);
  const Tensor log_probs_MV = torch::log_softmax(model_.logits(read_MD).to(delta_AD.scalar_type()), -1);
  const Tensor label_log_probs =
      log_probs_MV.slice(0, 0, n_labels).gather(1, rows_.label_ids_L.unsqueeze(1)).squeeze(1) * rows_.label_weight_L;
  BatchLosses losses;
  losses.nll_A =
      -torch::zeros({n_active}, label_log_probs.options()).index_add(0, rows_.label_request_L, label_log_probs);

  const Tensor now_AV = log_probs_MV.slice(0, n_labels);
  if (!drift_log_probs_NV_.defined()) drift_log_probs_NV_ = now_AV.detach().clone();
  const Tensor before_AV = drift_log_probs_NV_.index_select(0, index_tensor(active, now_AV.device()));
  losses.kl_A = (now_AV.exp() * (now_AV - before_AV)).sum(1);
  return losses;
}

}  // namespace lancet
