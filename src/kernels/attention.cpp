#include "lancet/kernels/attention.h"

#include <torch/types.h>

#include <cmath>
#include <limits>

namespace lancet {
namespace {

/// Up to so many queries the host multiplies whole matrices. Its flash attention goes through them in blocks, and for
/// each block of bf16 the matrix library sets up a product of its own: seven tenths of a value step went there.
constexpr int64_t kFewQueries = 32;

/// Scores of all queries at once, the softmax in at least f32.
Tensor attention_by_products(const Tensor& query_BKTC, const Tensor& key_BKSC, const Tensor& value_BKSC,
                             const Tensor& mask_B1TS) {
  const int64_t n_rows = query_BKTC.size(0);
  const at::ScalarType type = query_BKTC.scalar_type();
  const double scale = 1.0 / std::sqrt(static_cast<double>(query_BKTC.size(3)));
  const Tensor scores = torch::bmm(query_BKTC.flatten(0, 1) * scale, key_BKSC.flatten(0, 1).transpose(1, 2));
  const Tensor masked =
      scores.unflatten(0, {n_rows, -1}).masked_fill(mask_B1TS.logical_not(), -std::numeric_limits<double>::infinity());
  const Tensor weights = torch::softmax(masked, -1, type == at::kDouble ? at::kDouble : at::kFloat).to(type);
  return torch::bmm(weights.flatten(0, 1), value_BKSC.flatten(0, 1)).unflatten(0, {n_rows, -1});
}

}  // namespace

Tensor grouped_attention(const Tensor& query_BHTC, const Tensor& key_BKSC, const Tensor& value_BKSC,
                         const Tensor& mask_B1TS) {
  const int64_t group = query_BHTC.size(1) / key_BKSC.size(1);
  if (!mask_B1TS.defined()) {
    const auto spread = [&](const Tensor& x) { return group == 1 ? x : x.repeat_interleave(group, 1); };
    return at::scaled_dot_product_attention(query_BHTC, spread(key_BKSC), spread(value_BKSC), {}, 0.0,
                                            /*is_causal=*/true);
  }
  // The heads of a group become more queries of one head: keys and values are not copied.
  const int64_t n_queries = query_BHTC.size(2);
  const Tensor stacked_BKTC = query_BHTC.unflatten(1, {-1, group}).flatten(2, 3);
  const Tensor mask = group == 1 ? mask_B1TS : mask_B1TS.repeat({1, 1, group, 1});
  const bool by_products = stacked_BKTC.device().is_cpu() && n_queries <= kFewQueries;
  const Tensor attended = by_products ? attention_by_products(stacked_BKTC, key_BKSC, value_BKSC, mask)
                                      : at::scaled_dot_product_attention(stacked_BKTC, key_BKSC, value_BKSC, mask);
  return attended.unflatten(2, {group, n_queries}).flatten(1, 2);
}

}  // namespace lancet
