#include "cumulative_sums.h"

#include <torch/types.h>

#include "lancet/runtime/devices.h"

namespace lancet {
namespace {

/// The cost of a block's product grows with its size, and the number of levels falls: it is three for 262,144 numbers.
constexpr int64_t kBlock = 64;

/// Returns the cumulative sums within blocks [.., n] of f64: their products with a triangle of ones.
Tensor sums_within(const Tensor& blocks_XK) {
  const int64_t n = blocks_XK.size(-1);
  return torch::matmul(blocks_XK, torch::ones({n, n}, blocks_XK.options()).triu());
}

}  // namespace

Tensor cumulative_sums(const Tensor& values_BN) {
  if (values_BN.device() == Placement::host()) return values_BN.cumsum(1, at::kDouble);
  return cumulative_sums_by_products(values_BN);
}

Tensor cumulative_sums_by_products(const Tensor& values_BN) {
  const int64_t n = values_BN.size(1);
  if (n <= kBlock) return sums_within(values_BN.to(at::kDouble));
  const int64_t padding = (kBlock - n % kBlock) % kBlock;
  const Tensor sums_BCK =
      sums_within(at::constant_pad_nd(values_BN, {0, padding}).to(at::kDouble).unflatten(1, {-1, kBlock}));
  // each block adds the sum of all blocks before it, so the last block's sum is not needed
  const Tensor block_BC = sums_BCK.select(2, kBlock - 1).slice(1, 0, -1);
  sums_BCK.slice(1, 1).add_(cumulative_sums_by_products(block_BC).unsqueeze(2));
  return sums_BCK.flatten(1).slice(1, 0, n).contiguous();
}

}  // namespace lancet
