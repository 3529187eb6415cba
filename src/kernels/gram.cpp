#include "lancet/kernels/gram.h"

#include <torch/types.h>
#include <algorithm>
#include <functional>
#include <stdexcept>

#include "lancet/core/strings.h"
#include "lancet/runtime/devices.h"
#include "lancet/runtime/send.h"

namespace lancet {
namespace {

/// Rows of one f32 product. With more rows, fewer products are added to the f64 sum, which saves memory traffic; with
/// fewer rows, the rounding of f32 stays smaller.
constexpr int64_t kChunkRows = 16384;
/// Columns of a panel: wide enough for the matrix units, narrow enough that little is computed twice. Measured: at 768
/// columns, 256 was faster than 128, 384 and 512; at 4096 the choice changes 3 %.
int64_t panel_columns(int64_t size) { return std::max<int64_t>(256, (size / 16 + 63) / 64 * 64); }

/// Calls work(begin, end) for each panel of columns.
void for_each_panel(int64_t size, const std::function<void(int64_t begin, int64_t end)>& work) {
  const int64_t width = panel_columns(size);
  for (int64_t begin = 0; begin < size; begin += width) work(begin, std::min(begin + width, size));
}

/// Whether the matrix units multiply such rows with sums in f32.
bool has_sixteen_bits(const Tensor& rows) {
  return rows.scalar_type() == torch::kBFloat16 || rows.scalar_type() == torch::kHalf;
}

/// Returns left^T right. 16-bit numbers are multiplied with sums in f32: a product of two such numbers is exact in f32,
/// so the host, which has no such operation, computes the same formula from numbers widened to f32.
Tensor product(const Tensor& left_NF, const Tensor& right_NG) {
  if (!has_sixteen_bits(right_NG)) return torch::matmul(left_NF.t(), right_NG);
  if (has_sixteen_bit_products(right_NG.device())) return at::mm(left_NF.t(), right_NG, torch::kFloat);
  return torch::matmul(left_NF.to(torch::kFloat).t(), right_NG.to(torch::kFloat));
}

/// Returns the value for the device; calls `make` when the device is asked for the first time.
template <typename T, typename Make>
const T& once_a_device(std::vector<std::pair<at::Device, T>>& made, at::Device device, const Make& make) {
  for (const auto& [where, value] : made)
    if (where == device) return value;
  return made.emplace_back(device, make()).second;
}

}  // namespace

GramProducts gram_products(at::Device device) {
  return has_sixteen_bit_products(device) ? GramProducts::kSixteenBits : GramProducts::kWidened;
}

GramScratch gram_scratch_bytes(int64_t size, int64_t rows, at::ScalarType dtype) {
  const int64_t precise = dtype == torch::kDouble ? 8 : 4;
  // the widened rows, and for rows that count more than once also the scaled ones
  const int64_t copies = c10::elementSize(dtype) < 4 ? 2 : 1;
  return {.factors = copies * precise * size * std::min(rows, kChunkRows),
          .panel = precise * size * std::min(size, panel_columns(size))};
}

RowCounts::RowCounts(Tensor host_counts_N) : host_counts_N_(std::move(host_counts_N)) {
  if (!host_counts_N_.defined()) return;
  check_device(host_counts_N_, Placement::host(), "counts of rows");
  const Tensor places = (host_counts_N_ > 1).nonzero().flatten();
  places_.assign(places.const_data_ptr<int64_t>(), places.const_data_ptr<int64_t>() + places.numel());
}

int64_t RowCounts::total(int64_t rows) const {
  return host_counts_N_.defined() ? host_counts_N_.sum().item<int64_t>() : rows;
}

Tensor RowCounts::on(at::Device device) {
  if (!host_counts_N_.defined()) return {};
  return once_a_device(counts_, device, [&] { return sent_to(device, host_counts_N_); });
}

RowCounts::Repeated RowCounts::repeated(int64_t begin, int64_t end, at::Device device) {
  const auto place = [&](int64_t row) { return std::ranges::lower_bound(places_, row) - places_.begin(); };
  const int64_t first = place(begin), n = place(end) - first;
  if (n == 0) return {};
  const Repeated& all = once_a_device(repeated_, device, [&] {
    const Tensor surplus = host_counts_N_.index_select(0, to_index(places_, Placement::host())) - 1;
    return Repeated{to_index(places_, device), sent_to(device, surplus.to(torch::kFloat))};
  });
  return {all.places_R.narrow(0, first, n), all.surplus_R.narrow(0, first, n)};
}

GramAccumulator::GramAccumulator(int64_t size, at::Device device, GramProducts products, at::Device sum_device)
    : device_(device),
      sum_FF_(torch::zeros({size, size}, torch::TensorOptions(torch::kDouble).device(sum_device))),
      products_(products) {}

void GramAccumulator::add(const Tensor& rows_NF) {
  RowCounts once;
  add(rows_NF, once);
}

void GramAccumulator::add(const Tensor& rows_NF, RowCounts& counts) {
  check_device(rows_NF, device_, "rows for a second moment");
  const bool keeps_type = products_ == GramProducts::kSixteenBits && has_sixteen_bits(rows_NF);
  for (int64_t begin = 0; begin < rows_NF.size(0); begin += kChunkRows)
    fold(keeps_type ? sixteen_bits(rows_NF, begin, counts) : widened(rows_NF, begin, counts));
  rows_ += counts.total(rows_NF.size(0));
}

GramAccumulator::Factors GramAccumulator::widened(const Tensor& rows_NF, int64_t begin, RowCounts& counts) const {
  const auto chunk = [&](const Tensor& x) { return x.slice(0, begin, begin + kChunkRows); };
  const bool double_rows = rows_NF.scalar_type() == torch::kDouble;
  const Tensor right = double_rows ? chunk(rows_NF) : chunk(rows_NF).to(torch::kFloat);
  const Tensor counts_N = counts.on(rows_NF.device());
  if (!counts_N.defined()) return {.left_NF = right, .right_NF = right, .more_left_RF = {}, .more_right_RF = {}};
  return {.left_NF = right * chunk(counts_N).to(right.scalar_type()).unsqueeze(1),
          .right_NF = right,
          .more_left_RF = {},
          .more_right_RF = {}};
}

GramAccumulator::Factors GramAccumulator::sixteen_bits(const Tensor& rows_NF, int64_t begin, RowCounts& counts) const {
  const int64_t end = std::min(begin + kChunkRows, rows_NF.size(0));
  const Tensor chunk = rows_NF.slice(0, begin, end);
  const auto [places_R, surplus_R] = counts.repeated(begin, end, rows_NF.device());
  if (!places_R.defined()) return {.left_NF = chunk, .right_NF = chunk, .more_left_RF = {}, .more_right_RF = {}};
  const Tensor repeated = rows_NF.index_select(0, places_R).to(torch::kFloat);
  return {.left_NF = chunk,
          .right_NF = chunk,
          .more_left_RF = repeated * surplus_R.unsqueeze(1),
          .more_right_RF = repeated};
}

void GramAccumulator::fold(const Factors& factors) {
  // MKL computes tall products (panels below the diagonal) faster than the same ones transposed
  for_each_panel(sum_FF_.size(0), [&](int64_t first, int64_t last) {
    Tensor panel = product(factors.left_NF.slice(1, first), factors.right_NF.slice(1, first, last));
    if (factors.more_left_RF.defined())
      panel.addmm_(factors.more_left_RF.slice(1, first).t(), factors.more_right_RF.slice(1, first, last));
    sum_FF_.slice(0, first).slice(1, first, last).add_(panel.to(sum_FF_.device()));
  });
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
  mirror_lower(sum_FF_);  // the two halves of a product may differ in the last bit
  return std::move(sum_FF_.div_(static_cast<double>(rows_)));
}

void mirror_lower(const Tensor& matrices) {
  for_each_panel(matrices.size(-1), [&](int64_t begin, int64_t end) {
    const Tensor panel = matrices.slice(-1, begin, end);
    Tensor corner = panel.slice(-2, begin, end);
    corner.copy_(corner.tril() + corner.tril(-1).mT());
    matrices.slice(-2, begin, end).slice(-1, end).copy_(panel.slice(-2, end).mT());
  });
}

Tensor cholesky_in_place(Tensor matrix) {
  // Column-major, since torch would factor a copy otherwise; the transpose of a symmetric matrix is the same matrix.
  Tensor lower = matrix.is_contiguous() ? matrix.mT() : std::move(matrix);
  Tensor info =
      torch::empty(lower.sizes().slice(0, static_cast<size_t>(lower.dim() - 2)), lower.options().dtype(at::kInt));
  at::linalg_cholesky_ex_out(lower, info, lower);
  return info.any().item<bool>() ? Tensor() : lower;
}

}  // namespace lancet
