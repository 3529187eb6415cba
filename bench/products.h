// The matrix products of a model's weights, alone: the arithmetic that a stage cannot do without. Attention's own
// products (a few percent at these lengths) and everything elementwise are left out.
#pragma once

#include <cstdint>
#include <vector>

#include "lancet/models/causal_lm.h"

namespace lancet::bench {

/// Parameters of a layer's matrices: each costs 2 FLOP per token.
double layer_parameters(const ModelConfig& config);

/// Weight matrices of the layers, and the head.
std::vector<Tensor> layer_matrices(const CausalLM& model, LayerRange layers);
Tensor head_matrix(const CausalLM& model);

/// Products of `rows` random rows with matrices [out, in]: forward, and the gradient's with respect to the rows.
class ProductRunner {
 public:
  ProductRunner(std::vector<Tensor> matrices_OI, int64_t most_rows);

  /// Waits for the result.
  void forward_and_backward(int64_t rows) const;
  /// FLOP of that.
  double flop(int64_t rows) const;

 private:
  std::vector<Tensor> matrices_OI_;
  std::vector<Tensor> inputs_RI_;   ///< one for each matrix; equal widths share one
  std::vector<Tensor> outputs_RO_;  ///< gradients of the outputs, likewise
};

}  // namespace lancet::bench
