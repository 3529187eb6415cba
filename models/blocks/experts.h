// An MLP of experts: a router sends each token through some of them (arXiv 1701.06538, as Qwen3-MoE has it).
#pragma once

#include <vector>

#include "lancet/models/model_config.h"
#include "layer_weights.h"

namespace lancet {

/// Tokens as they go through a layer's experts: each as often as it chooses one. S = N * chosen places, the experts'
/// one after the other; F the size of all experts' keys together, W of one's.
class RoutedTokens {
 public:
  /// What the experts' biases give to the layer's output beside the products of whole_keys(); undefined: nothing.
  const Tensor& biases() const { return biases_; }

  /// The layer's output: x's shape.
  Tensor output(const LayerWeights& weights) const;

  /// What the down projections read, each expert's in its place, zeros where a token does not go: x's shape, but F
  /// last.
  Tensor whole_keys() const;

 private:
  friend RoutedTokens route(const ModelConfig& config, const LayerWeights& weights, const Tensor& x);

  /// Places begin..end-1 are `expert`'s.
  struct Share {
    int64_t expert = 0, begin = 0, end = 0;
  };

  KeyShape shape_;
  int64_t chosen_ = 1;
  std::vector<int64_t> sizes_;  ///< x's
  std::vector<Share> shares_;   ///< shares of experts that tokens go to, in their order
  Tensor order_S_;              ///< places sorted by expert: which token's choice each is, token * chosen + choice
  Tensor expert_S_;             ///< sorted
  Tensor key_SW_;               ///< times the expert's weight for the token
  Tensor biases_;
};

/// Chooses and computes the keys. x: [..., D]. How many tokens go where is read by the host, once.
RoutedTokens route(const ModelConfig& config, const LayerWeights& weights, const Tensor& x);

/// What the down projection of the MLP reads that all tokens go through beside their experts: [..., S]. x: [..., D].
Tensor shared_key(const ModelConfig& config, const LayerWeights& weights, const Tensor& x);

/// That MLP's output.
Tensor shared_output(const ModelConfig& config, const LayerWeights& weights, const Tensor& x, const Tensor& key);

}  // namespace lancet
