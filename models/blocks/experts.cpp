#include "experts.h"

#include <torch/types.h>

#include <limits>
#include <tuple>

#include "lancet/kernels/decoder_ops.h"
#include "lancet/kernels/linear.h"
#include "lancet/runtime/devices.h"
#include "pointwise.h"
#include "scaled.h"

namespace lancet {
namespace {

using enum WeightKind;

/// The experts of tokens, and their weights.
struct Choice {
  Tensor expert_NK;
  Tensor weight_NK;
};

/// Chooses experts one after another: each time the best remaining one, with a weight relative to those with similar
/// scores.
Choice choose_one_by_one(const ExpertsConfig& experts, const Tensor& scores_NE) {
  std::vector<Tensor> chosen, weights;
  Tensor left_NE = scores_NE;
  for (int64_t i = 0; i < experts.chosen; ++i) {
    const auto [best_N1, expert_N1] = left_NE.max(1, /*keepdim=*/true);
    const Tensor distance_NE = (best_N1 - scores_NE) / at::maximum(scores_NE.abs(), best_N1);
    const Tensor near_NE =
        left_NE.masked_fill(distance_NE > 2 * experts.nearness, -std::numeric_limits<double>::infinity());
    weights.push_back(torch::softmax(near_NE, 1).gather(1, expert_N1));
    chosen.push_back(expert_N1);
    left_NE = left_NE.scatter(1, expert_N1, -std::numeric_limits<double>::infinity());
  }
  return {torch::cat(chosen, 1), torch::cat(weights, 1)};
}

/// Returns the scores, in which those outside the best groups can never be chosen.
Tensor of_best_groups(const ExpertsConfig& experts, const Tensor& scores_NE) {
  if (experts.groups == 1) return scores_NE;
  const Tensor scores_NGX = scores_NE.unflatten(1, {experts.groups, -1});
  const Tensor sum_NG = std::get<0>(scores_NGX.topk(experts.group_best, 2)).sum(2);
  const Tensor group_NC = std::get<1>(sum_NG.topk(experts.groups_chosen, 1));
  const Tensor is_left_NG = torch::ones_like(sum_NG, torch::kBool).scatter(1, group_NC, false);
  return scores_NGX.masked_fill(is_left_NG.unsqueeze(2), -std::numeric_limits<double>::infinity()).flatten(1);
}

Choice choose(const ExpertsConfig& experts, const LayerWeights& weights, const Tensor& x_ND) {
  const at::ScalarType precise = precise_type(x_ND);
  const Tensor logits_NE = experts.choice_bias || experts.precise_router
                               ? linear_of(x_ND.to(precise), weights[kRouter].to(precise))
                               : weights.linear(x_ND, kRouter, kRouterOffset).to(precise);
  if (experts.score == RouterScore::kOneByOne) return choose_one_by_one(experts, logits_NE);
  const Tensor score_NE = experts.score == RouterScore::kSigmoid ? logits_NE.sigmoid() : torch::softmax(logits_NE, -1);
  const Tensor chosen_by_NE =
      of_best_groups(experts, experts.choice_bias ? score_NE + weights[kRouterBias].to(precise) : score_NE);
  const Tensor expert_NK = std::get<1>(at::topk(chosen_by_NE, experts.chosen, -1));
  Tensor weight_NK = score_NE.gather(1, expert_NK);
  if (experts.sums_to_one)
    weight_NK = weight_NK / (weight_NK.sum(-1, /*keepdim=*/true) + experts.added_to_sum).clamp_min(experts.least_sum);
  return {expert_NK, scaled(weight_NK, experts.scale)};
}

}  // namespace

RoutedTokens route(const ModelConfig& config, const LayerWeights& weights, const Tensor& x) {
  const ExpertsConfig& experts = config.experts;
  RoutedTokens routed;
  routed.shape_ = {experts.count, experts.d_ffn};
  routed.chosen_ = experts.chosen;
  routed.sizes_ = x.sizes().vec();
  const Tensor x_ND = x.flatten(0, -2);
  const auto [expert_NK, weight_NK] = choose(experts, weights, x_ND);
  const auto bias_of = [&](WeightKind kind, int64_t expert) {
    const Tensor& biases = weights[kind];
    return biases.defined() ? biases.narrow(0, expert * experts.d_ffn, experts.d_ffn) : Tensor();
  };

  std::tie(routed.expert_S_, routed.order_S_) = expert_NK.flatten().sort(/*stable=*/true, 0, /*descending=*/false);
  const Tensor count_E = torch::bincount(routed.expert_S_, {}, experts.count).to(Placement::host());
  // A token is copied once for each of its experts, and the copies are sorted afterwards, so that no two gradients are
  // added in one place.
  const Tensor x_SD = x_ND.unsqueeze(1).expand({-1, experts.chosen, -1}).flatten(0, 1).index_select(0, routed.order_S_);
  std::vector<Tensor> keys;
  int64_t begin = 0;
  for (int64_t e = 0; e < experts.count; ++e) {
    const int64_t n = count_E.const_data_ptr<int64_t>()[e];
    if (n == 0) continue;
    const Tensor own_ND = x_SD.narrow(0, begin, n);
    const auto projected = [&](WeightKind kind, WeightKind bias) {
      return weights.linear_of_expert(own_ND, kind, e, experts.d_ffn, bias_of(bias, e));
    };
    const Tensor gate = config.gated_mlp ? projected(kGate, kGateBias) : Tensor();
    keys.push_back(mlp_key(config, weights, gate, projected(kUp, kUpBias)));
    routed.shares_.push_back({e, begin, begin + n});
    begin += n;
  }
  const Tensor weight_S = weight_NK.flatten().index_select(0, routed.order_S_).to(x.scalar_type());
  routed.key_SW_ = torch::cat(keys) * weight_S.unsqueeze(1);
  if (weights[kDownBiases].defined()) {
    const Tensor bias_ED = weights[kDownBiases].unflatten(0, {experts.count, -1});
    const Tensor share_NE = torch::zeros({x_ND.size(0), experts.count}, x.options());
    routed.biases_ =
        linear_of(share_NE.scatter(1, expert_NK, weight_NK.to(x.scalar_type())), bias_ED.t()).view(routed.sizes_);
  }
  return routed;
}

Tensor RoutedTokens::output(const LayerWeights& weights) const {
  std::vector<Tensor> outputs;
  for (const Share& share : shares_)
    outputs.push_back(
        weights.linear_of_expert(key_SW_.slice(0, share.begin, share.end), kDown, share.expert, shape_.width));
  // restores the order of the tokens, so that sums have a fixed order, which index_add does not have on a GPU
  const Tensor out_SD = torch::cat(outputs).index_select(0, order_S_.argsort());
  const Tensor out = out_SD.unflatten(0, {-1, chosen_}).sum(1).view(sizes_);
  return biases_.defined() ? out + biases_ : out;
}

Tensor shared_key(const ModelConfig& config, const LayerWeights& weights, const Tensor& x) {
  const Tensor gate = config.gated_mlp ? weights.linear(x, kSharedGate) : Tensor();
  return mlp_key(config, weights, gate, weights.linear(x, kSharedUp));
}

Tensor shared_output(const ModelConfig& config, const LayerWeights& weights, const Tensor& x, const Tensor& key) {
  const Tensor out = weights.linear(key, kSharedDown);
  return config.experts.shared_switch ? weights.linear(x, kSharedSwitch).sigmoid() * out : out;
}

Tensor RoutedTokens::whole_keys() const {
  const Tensor token_S = order_S_.div(chosen_, "floor");
  const Tensor keys_XW = torch::zeros({order_S_.size(0) / chosen_ * shape_.experts, shape_.width}, key_SW_.options());
  std::vector<int64_t> sizes = sizes_;
  sizes.back() = shape_.size();
  return keys_XW.index_copy(0, token_S * shape_.experts + expert_S_, key_SW_).view(sizes);
}

}  // namespace lancet
