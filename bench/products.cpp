#include "products.h"

#include <torch/types.h>

#include <map>

#include "lancet/models/memory.h"
#include "machine.h"

namespace lancet::bench {

double layer_parameters(const ModelConfig& config) {
  const int64_t attention = 2 * (config.n_heads + config.n_kv_heads) * config.head_dim * config.d_model;
  return static_cast<double>(attention + mlp_matrices(config) * config.d_model * config.d_ffn);
}

std::vector<Tensor> layer_matrices(const CausalLM& model, LayerRange layers) {
  constexpr WeightKind kMatrices[] = {WeightKind::kQuery, WeightKind::kKey, WeightKind::kValue, WeightKind::kAttnOut,
                                      WeightKind::kGate,  WeightKind::kUp,  WeightKind::kDown};
  std::vector<Tensor> matrices;
  for (int64_t layer = layers.begin; layer < layers.end; ++layer)
    for (const WeightKind kind : kMatrices)
      if (has_weight(model.config(), kind)) matrices.push_back(model.weight({kind, layer}));
  return matrices;
}

Tensor head_matrix(const CausalLM& model) {
  return model.weight({model.config().tied_embeddings ? WeightKind::kEmbedding : WeightKind::kHead, 0});
}

ProductRunner::ProductRunner(std::vector<Tensor> matrices_OI, int64_t most_rows)
    : matrices_OI_(std::move(matrices_OI)) {
  std::map<int64_t, Tensor> by_width;
  const auto rows_of = [&](const Tensor& matrix, int64_t dim) {
    Tensor& rows = by_width[matrix.size(dim)];
    if (!rows.defined()) rows = torch::randn({most_rows, matrix.size(dim)}, matrix.options());
    return rows;
  };
  for (const Tensor& matrix : matrices_OI_) {
    inputs_RI_.push_back(rows_of(matrix, 1));
    outputs_RO_.push_back(rows_of(matrix, 0));
  }
}

void ProductRunner::forward_and_backward(int64_t rows) const {
  const torch::NoGradGuard no_grad;
  Tensor last;
  for (size_t i = 0; i < matrices_OI_.size(); ++i) last = at::linear(inputs_RI_[i].slice(0, 0, rows), matrices_OI_[i]);
  for (size_t i = matrices_OI_.size(); i-- > 0;)
    last = torch::matmul(outputs_RO_[i].slice(0, 0, rows), matrices_OI_[i]);
  wait_for(last);
}

double ProductRunner::flop(int64_t rows) const {
  double parameters = 0;
  for (const Tensor& matrix : matrices_OI_) parameters += static_cast<double>(matrix.numel());
  return 2 * 2 * parameters * static_cast<double>(rows);
}

}  // namespace lancet::bench
