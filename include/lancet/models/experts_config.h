// Mixture-of-experts MLPs, and the shape of the keys that down projections read.
#pragma once

#include <cstdint>
#include <vector>

namespace lancet {

/// How a router turns its outputs into the weights of the experts.
enum class RouterScore : uint8_t {
  kSoftmax,
  kSigmoid,
  kOneByOne  ///< each chosen expert gets a softmax over those that are left and near it (arXiv 2409.12136)
};

/// A mixture of experts: a layer has several MLPs in the place of one, and each token goes through some of them (arXiv
/// 1701.06538).
struct ExpertsConfig {
  int64_t count = 0;         ///< experts of a layer; 0: the model has none
  int64_t chosen = 0;        ///< experts that the router chooses for each token
  int64_t d_ffn = 0;         ///< width of one expert's MLP
  bool sums_to_one = false;  ///< the weights of a token's chosen experts sum to 1; else the weights of all experts do
  RouterScore score = RouterScore::kSoftmax;
  bool choice_bias = false;     ///< a bias is added to the scores by which experts are chosen (arXiv 2408.15664)
  bool router_bias = false;     ///< the router's outputs have a bias
  bool precise_router = false;  ///< the router computes in the wider type throughout
  bool mlp_biases = false;      ///< gate, up and down projections have biases
  int64_t groups = 1;           ///< number of groups of equal size that the experts are divided into
  int64_t groups_chosen = 1;    ///< number of groups whose experts may be chosen
  int64_t group_best = 2;       ///< groups are ranked by the sum of this many best scores
  /// Smallest divisor when weights are made to sum to 1; the divisor is their sum plus added_to_sum.
  double least_sum = 0;
  double added_to_sum = 0;
  /// kOneByOne: an expert whose score is farther from the best than twice this share of the best is not near.
  double nearness = 0;
  double scale = 1;               ///< the weights are multiplied by this
  int64_t shared = 0;             ///< width of an additional MLP that all tokens go through; 0: none
  bool shared_switch = false;     ///< the output of that MLP has a weight for each token
  bool in_one_tensor = false;     ///< the files store all experts of a layer in one tensor
  std::vector<bool> layers = {};  ///< which layers have experts
};

/// The shape of what a layer's down projection reads (its keys). With experts, the keys of all experts are
/// concatenated, each multiplied by the expert's weight, with zeros for experts that the token does not go to.
struct KeyShape {
  int64_t experts = 1;
  int64_t width = 0;  ///< width of one expert's keys
  int64_t size() const { return experts * width; }
  /// Count of the second moments, which are kept for each expert separately.
  int64_t moments() const { return size() * width; }
  bool operator==(const KeyShape&) const = default;
};

}  // namespace lancet
