#include "lancet/kernels/few_rows.h"

#include <torch/types.h>

#include <algorithm>
#include <vector>

#include "few_rows_loops.h"
#include "host_dispatch.h"
#include "lancet/kernels/convert.h"
#include "lancet/runtime/devices.h"

namespace lancet {
namespace {

/// Rows of a matrix that are read at a time: with the activations they fit into a core's own cache.
constexpr int64_t kTileNumbers = 8192;

int64_t tile_rows(int64_t columns) { return std::max<int64_t>(1, kTileNumbers / std::max<int64_t>(1, columns)); }

}  // namespace

bool are_few_rows(const Tensor& x) {
  const bool has_loops = x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
  if (!has_loops || x.device() != Placement::host() || x.numel() == 0) return false;
  return x.numel() / x.size(-1) <= kFewRows;
}

void round_to_bf16(std::span<float> numbers) { round_row_to_bf16(numbers.data(), std::ssize(numbers)); }

Tensor few_rows_product(const Tensor& x, int64_t outputs, const ReadRows& read, const Tensor& bias) {
  const int64_t columns = x.size(-1), n = x.numel() / columns;
  const Tensor x_NI = x.reshape({n, columns}).to(at::kFloat).contiguous();
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = outputs;
  Tensor y = at::empty(sizes, x_NI.options());
  const float* const activations = x_NI.const_data_ptr<float>();
  float* const to = y.mutable_data_ptr<float>();
  const int64_t step = tile_rows(columns);
  parallel_rows(outputs, columns * (n + 1), [&](RowRange range) {
    std::vector<float> tile(static_cast<size_t>(step * columns));
    for (int64_t begin = range.begin; begin < range.end; begin += step) {
      const int64_t count = std::min(step, range.end - begin);
      read(begin, count, tile.data());
      for (int64_t row = 0; row < count; ++row)
        compute_row_dots({.row = tile.data() + row * columns,
                          .x = activations,
                          .rows = n,
                          .columns = columns,
                          .out = to + begin + row,
                          .stride = outputs});
    }
  });
  if (bias.defined()) y.add_(bias.to(at::kFloat));
  return y.to(x.scalar_type());
}

Tensor few_rows_linear(const Tensor& x, const Tensor& weight_OI, const Tensor& bias_O) {
  const std::span numbers(reinterpret_cast<const uint16_t*>(weight_OI.const_data_ptr<at::BFloat16>()),
                          static_cast<size_t>(weight_OI.numel()));
  const auto columns = static_cast<size_t>(weight_OI.size(1));
  const auto read = [&](int64_t begin, int64_t count, float* rows) {
    const size_t n = static_cast<size_t>(count) * columns;
    widen(numbers.subspan(static_cast<size_t>(begin) * columns, n), {rows, n});
  };
  return few_rows_product(x, weight_OI.size(0), read, bias_O);
}

}  // namespace lancet
