#include "lancet/editor_parts/realised_shares.h"

#include <torch/types.h>

#include <algorithm>
#include <optional>

namespace lancet {
namespace {

/// Multiplies column by column: a dot product for each.
Tensor dots(const Tensor& a_DN, const Tensor& b_DN) { return (a_DN * b_DN).sum(0); }

Tensor change_of(const Tensor& keys_FN, const WeightDelta& delta) {
  if (const auto* low_rank = std::get_if<LowRankDelta>(&delta))
    return torch::matmul(low_rank->left_OR, torch::matmul(low_rank->right_RI, keys_FN));
  return torch::matmul(std::get<DenseDelta>(delta).full_OI, keys_FN);
}

}  // namespace

void RealisedShares::note(const LayerChange& change, const std::vector<int64_t>& targets) {
  const torch::NoGradGuard no_grad;
  const Tensor sums_RN = context_.decide_by([&] {
    const Tensor given_DN = change_of(change.keys_FN, change.delta);
    const Tensor& asked_DN = change.residuals_DN;
    std::vector<Tensor> sums{dots(given_DN, asked_DN), dots(asked_DN, asked_DN)};
    if (change.is_last) {
      const Tensor first_DN = first_DT_.index_select(1, to_index(targets, first_DT_.device())).to(given_DN.device());
      sums.insert(sums.end(), {dots(first_DN - asked_DN + given_DN, first_DN), dots(first_DN, first_DN)});
    }
    return torch::stack(sums);
  });
  std::vector<Sums>& own = by_layer_.try_emplace(change.layer, static_cast<size_t>(n_targets_)).first->second;
  const std::vector<double> sums = to_doubles(sums_RN);
  const size_t n = targets.size();
  for (size_t i = 0; i < n; ++i) {
    const auto target = static_cast<size_t>(targets[i]);
    own[target].given += sums[i];
    own[target].asked += sums[n + i];
    if (change.is_last) in_all_[target] = {sums[2 * n + i], sums[3 * n + i]};
  }
}

void RealisedShares::note_missing(const Tensor& missing_DN, const std::vector<int64_t>& targets) {
  std::vector<int64_t> columns, fresh;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (has_first_[static_cast<size_t>(targets[i])]) continue;
    has_first_[static_cast<size_t>(targets[i])] = true;
    columns.push_back(static_cast<int64_t>(i));
    fresh.push_back(targets[i]);
  }
  if (fresh.empty()) return;
  if (!first_DT_.defined()) first_DT_ = torch::zeros({missing_DN.size(0), n_targets_}, missing_DN.options());
  const at::Device device = first_DT_.device();
  const Tensor fresh_DN = missing_DN.index_select(1, to_index(columns, missing_DN.device()));
  first_DT_.index_copy_(1, to_index(fresh, device), fresh_DN.to(device));
}

void RealisedShares::write_to(RequestOutcome& outcome, std::span<const int64_t> targets) const {
  const auto least = [&](const std::vector<Sums>& sums) {
    std::optional<double> share;
    for (const int64_t target : targets)
      if (const auto& [given, asked] = sums[static_cast<size_t>(target)]; asked > 0)
        share = std::min(share.value_or(given / asked), given / asked);
    return share;
  };
  for (const auto& [layer, sums] : by_layer_)
    if (const std::optional<double> share = least(sums)) outcome.realised_by_layer.push_back({layer, *share});
  if (const std::optional<double> share = least(in_all_)) outcome.realised = share;
}

}  // namespace lancet
