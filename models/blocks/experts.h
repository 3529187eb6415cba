// An MLP with experts: a router sends each token through some of them (arXiv 1701.06538, in Qwen3-MoE's form).
#pragma once

#include <vector>

#include "lancet/models/model_config.h"
#include "layer_weights.h"

namespace lancet {

/// Tokens on their way through a layer's experts. A token occurs once for each expert that it chooses. S = N * chosen
/// places, sorted by expert; F is the size of the keys of all experts together, W that of one expert.
class RoutedTokens {
 public:
  /// Returns what the experts' biases add to the layer's output in addition to the products of whole_keys(); undefined
  /// if there are none.
  const Tensor& biases() const { return biases_; }

  /// Returns the layer's output, in x's shape.
  Tensor output(const LayerWeights& weights) const;

  /// Returns the inputs of the down projections, with each expert's part in its place and zeros for experts that a
  /// token does not choose: x's shape, but with F as the last size.
  Tensor whole_keys() const;

 private:
  friend RoutedTokens route(const ModelConfig& config, const LayerWeights& weights, const Tensor& x);

  /// Places begin..end-1 belong to `expert`.
  struct Share {
    int64_t expert = 0, begin = 0, end = 0;
  };

  KeyShape shape_;
  int64_t chosen_ = 1;
  std::vector<int64_t> sizes_;  ///< sizes of x
  std::vector<Share> shares_;   ///< experts with tokens, in their order
  Tensor order_S_;              ///< places sorted by expert: which token's choice each is, token * chosen + choice
  Tensor expert_S_;             ///< expert of each place, sorted
  Tensor key_SW_;               ///< multiplied by the expert's weight for the token
  Tensor biases_;
};

/// Chooses experts and computes the keys. x: [..., D]. The host reads once how many tokens go to which expert.
RoutedTokens route(const ModelConfig& config, const LayerWeights& weights, const Tensor& x);

/// Returns the input of the down projection of the MLP through which all tokens go in addition to their experts: [...,
/// S]. x: [..., D].
Tensor shared_key(const ModelConfig& config, const LayerWeights& weights, const Tensor& x);

/// Returns that MLP's output.
Tensor shared_output(const ModelConfig& config, const LayerWeights& weights, const Tensor& x, const Tensor& key);

}  // namespace lancet
