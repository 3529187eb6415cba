#include "experts.h"

#include <torch/types.h>

#include <tuple>

#include "lancet/kernels/decoder_ops.h"
#include "lancet/kernels/linear.h"
#include "lancet/runtime/placement.h"
#include "mlp.h"

namespace lancet {
namespace {

using enum WeightKind;

}  // namespace

RoutedTokens route(const ModelConfig& config, const LayerWeights& weights, const Tensor& x) {
  const ExpertsConfig& experts = config.experts;
  RoutedTokens routed;
  routed.shape_ = {experts.count, experts.d_ffn};
  routed.chosen_ = experts.chosen;
  routed.sizes_ = x.sizes().vec();
  const Tensor x_ND = x.flatten(0, -2), logits_NE = linear_of(x_ND, weights[kRouter]);
  const auto [best_NK, expert_NK] =
      at::topk(torch::softmax(logits_NE, -1, precise_type(logits_NE)), experts.chosen, -1);
  const Tensor weight_NK = experts.sums_to_one ? best_NK / best_NK.sum(-1, /*keepdim=*/true) : best_NK;

  std::tie(routed.expert_S_, routed.order_S_) = expert_NK.flatten().sort(/*stable=*/true, 0, /*descending=*/false);
  const Tensor count_E = torch::bincount(routed.expert_S_, {}, experts.count).to(Placement::host());
  // each token as often as it has experts, then in their order: in the backward pass no two gradients meet in one place
  const Tensor x_SD = x_ND.unsqueeze(1).expand({-1, experts.chosen, -1}).flatten(0, 1).index_select(0, routed.order_S_);
  std::vector<Tensor> keys;
  int64_t begin = 0;
  for (int64_t e = 0; e < experts.count; ++e) {
    const int64_t n = count_E.const_data_ptr<int64_t>()[e];
    if (n == 0) continue;
    const Tensor own_ND = x_SD.narrow(0, begin, n);
    keys.push_back(mlp_key(config, weights, weights.linear_of_expert(own_ND, kGate, e, experts.d_ffn),
                           weights.linear_of_expert(own_ND, kUp, e, experts.d_ffn)));
    routed.shares_.push_back({e, begin, begin + n});
    begin += n;
  }
  const Tensor weight_S = weight_NK.flatten().index_select(0, routed.order_S_).to(x.scalar_type());
  routed.key_SW_ = torch::cat(keys) * weight_S.unsqueeze(1);
  return routed;
}

Tensor RoutedTokens::output(const LayerWeights& weights) const {
  std::vector<Tensor> outputs;
  for (const Share& share : shares_)
    outputs.push_back(
        weights.linear_of_expert(key_SW_.slice(0, share.begin, share.end), kDown, share.expert, shape_.width));
  // back in the tokens' order, so that sums have an order too, which index_add has not on a GPU
  const Tensor out_SD = torch::cat(outputs).index_select(0, order_S_.argsort());
  return out_SD.unflatten(0, {-1, chosen_}).sum(1).view(sizes_);
}

Tensor RoutedTokens::whole_keys() const {
  const Tensor token_S = order_S_.div(chosen_, "floor");
  const Tensor keys_XW = torch::zeros({order_S_.size(0) / chosen_ * shape_.experts, shape_.width}, key_SW_.options());
  std::vector<int64_t> sizes = sizes_;
  sizes.back() = shape_.size();
  return keys_XW.index_copy(0, token_S * shape_.experts + expert_S_, key_SW_).view(sizes);
}

}  // namespace lancet
