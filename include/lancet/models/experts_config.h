// MLPs of experts, and the shape of the keys that down projections read.
#pragma once

#include <cstdint>
#include <vector>

namespace lancet {

/// What a router makes of its outputs: how much each expert counts.
enum class RouterScore : uint8_t {
  kSoftmax,
  kSigmoid,
  kOneByOne  ///< each chosen one by a softmax over those that are left and near it (arXiv 2409.12136)
};

/// MLPs of which each token goes through some, in the place of one (arXiv 1701.06538).
struct ExpertsConfig {
  int64_t count = 0;         ///< experts of a layer; 0: the model has none
  int64_t chosen = 0;        ///< experts that the router chooses for each token
  int64_t d_ffn = 0;         ///< numbers of one expert's MLP
  bool sums_to_one = false;  ///< the weights of a token's chosen ones; else: of all
  RouterScore score = RouterScore::kSoftmax;
  bool choice_bias = false;     ///< experts are chosen by scores that have a bias added (arXiv 2408.15664)
  bool router_bias = false;     ///< the router's outputs have a bias
  bool precise_router = false;  ///< routers compute in the wider type throughout
  bool mlp_biases = false;      ///< gates, ups and downs have biases
  int64_t groups = 1;           ///< experts lie in so many groups of equal size
  int64_t groups_chosen = 1;    ///< experts of so many groups are chosen
  int64_t group_best = 2;       ///< groups are chosen by the sums of so many best scores
  double least_sum = 0;         ///< weights are divided by at least this, plus added_to_sum
  double added_to_sum = 0;
  double nearness = 0;            ///< kOneByOne: what is farther from the best than twice this share of it is not near
  double scale = 1;               ///< factor of the weights
  int64_t shared = 0;             ///< numbers of the MLP that all tokens go through beside; 0: none
  bool shared_switch = false;     ///< its output has a weight for each token
  bool in_one_tensor = false;     ///< whether the files have all experts of a layer in one tensor
  std::vector<bool> layers = {};  ///< which layers have experts
};

/// What a layer's down projection reads: of experts, what each reads times its weight, one after the other, zeros
/// where a token does not go.
struct KeyShape {
  int64_t experts = 1;
  int64_t width = 0;  ///< width of one expert's keys
  int64_t size() const { return experts * width; }
  /// Numbers of second moments, which are kept for each expert alone.
  int64_t moments() const { return size() * width; }
  bool operator==(const KeyShape&) const = default;
};

}  // namespace lancet
