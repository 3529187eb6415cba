#include "lancet/kernels/gram.h"

#include <torch/types.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "lancet/core/strings.h"
#include "lancet/runtime/placement.h"

namespace lancet {
namespace {

/// Rows of one f32 product. Short chunks keep f32's rounding small: it grows with the number of rows summed in f32.
constexpr int64_t kChunkRows = 4096;
/// Columns of a panel: wide enough for the matrix units, narrow enough that little is computed twice. Measured: at 768
/// columns 256 beat 128, 384 and 512; at 4096 the choice changes 3 %.
int64_t panel_columns(int64_t size) { return std::max<int64_t>(256, (size / 16 + 63) / 64 * 64); }

/// Calls work(begin, end) for each panel of columns.
void for_each_panel(int64_t size, const std::function<void(int64_t begin, int64_t end)>& work) {
  const int64_t width = panel_columns(size);
  for (int64_t begin = 0; begin < size; begin += width) work(begin, std::min(begin + width, size));
}

}  // namespace

GramAccumulator::GramAccumulator(int64_t size, at::Device device)
    : sum_FF_(torch::zeros({size, size}, torch::TensorOptions(torch::kDouble).device(device))) {}

void GramAccumulator::add(const Tensor& rows_NF, const Tensor& host_counts_N) {
  check_device(rows_NF, sum_FF_.device(), "rows for a second moment");
  const Tensor counts_N = host_counts_N.defined() ? host_counts_N.to(rows_NF.device()) : Tensor();
  for (int64_t begin = 0; begin < rows_NF.size(0); begin += kChunkRows) {
    const auto chunk = [&](const Tensor& x) { return x.slice(0, begin, begin + kChunkRows); };
    const bool double_rows = rows_NF.scalar_type() == torch::kDouble;
    const Tensor right = double_rows ? chunk(rows_NF) : chunk(rows_NF).to(torch::kFloat);
    const Tensor left = counts_N.defined() ? right * chunk(counts_N).to(right.scalar_type()).unsqueeze(1) : right;
    // tall products (panels below the diagonal) are faster in MKL than the same ones transposed
    for_each_panel(sum_FF_.size(0), [&](int64_t first, int64_t last) {
      const Tensor panel = torch::matmul(left.slice(1, first).t(), right.slice(1, first, last));
      sum_FF_.slice(0, first).slice(1, first, last).add_(panel);
    });
  }
  rows_ += host_counts_N.defined() ? host_counts_N.sum().item<int64_t>() : rows_NF.size(0);
}

void GramAccumulator::restore(const Tensor& panels_FF, int64_t rows) {
  if (panels_FF.sizes() != sum_FF_.sizes() || panels_FF.scalar_type() != torch::kDouble)
    throw std::logic_error(cat("gram: expected panels ", sum_FF_.sizes(), " f64, got ", panels_FF.sizes(), " ",
                               at::toString(panels_FF.scalar_type())));
  sum_FF_.copy_(panels_FF);
  rows_ = rows;
}

void GramAccumulator::sum_over(Communicator& communicator) {
  if (communicator.size() == 1) return;
  communicator.sum(sum_FF_);
  Tensor rows = torch::full({1}, rows_, torch::kLong);
  communicator.sum(rows);
  rows_ = rows.item<int64_t>();
}

Tensor GramAccumulator::take_mean() && {
  for_each_panel(sum_FF_.size(0), [&](int64_t begin, int64_t end) {
    const Tensor panel = sum_FF_.slice(1, begin, end);
    Tensor corner = panel.slice(0, begin, end);
    corner.copy_(corner.tril() + corner.tril(-1).t());  // a product's two halves may differ in the last bit
    sum_FF_.slice(0, begin, end).slice(1, end).copy_(panel.slice(0, end).t());
  });
  return std::move(sum_FF_.div_(static_cast<double>(rows_)));
}

}  // namespace lancet
