#include "lancet/deltas/weight_diff.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "lancet/core/error.h"
#include "lancet/deltas/adapter.h"

namespace lancet {
namespace {

/// Eigenvalues of a Gram matrix below this share of the largest have lost digits. Their directions are computed again
/// from the remaining matrix.
constexpr double kTrustedShare = 1e-10;
/// Bounds of noise hold on average. The largest of few singular values can be above them by this factor.
constexpr double kAboveAverage = 1.1;
/// The number of rows that are processed together if only sums are needed.
constexpr int64_t kRowsAtOnce = 1024;

Tensor difference(const Tensor& before, const Tensor& after) {
  Tensor change = after.to(at::kDouble) - before.to(at::kDouble);
  if (!change.isfinite().all().item<bool>())
    throw NumericError(
        "difference of two weights: expected finite numbers, got NaN or infinity; one of them is damaged");
  return change;
}

/// The product u diag(values) vh of a wide matrix.
struct FoundDirections {
  std::vector<Tensor> left = {};    ///< [rows, k] each, orthonormal columns
  std::vector<Tensor> right = {};   ///< [k, columns], rows that are as long as the values
  std::vector<Tensor> values = {};  ///< [k]
  int64_t count = 0;
};

/// Removes the trusted directions from `rest`.
void take_directions(Tensor& rest, FoundDirections& found) {
  const auto [squares, vectors] = at::linalg_eigh(rest.mm(rest.t()));
  const double largest = squares[-1].item<double>();
  if (largest <= 0) return;
  const int64_t room = rest.size(0) - found.count;
  const int64_t trusted = std::min(room, (squares > kTrustedShare * largest).sum().item<int64_t>());
  const Tensor left = vectors.slice(1, vectors.size(1) - trusted).flip(1).contiguous();
  const Tensor right = left.t().mm(rest);
  rest.addmm_(left, right, /*beta=*/1, /*alpha=*/-1);
  found.left.push_back(left);
  found.right.push_back(right);
  found.values.push_back(right.norm(2, 1));
  found.count += trusted;
}

/// Returns the distance between neighbouring numbers of `type` at each number, f64.
Tensor steps_of(const Tensor& numbers, at::ScalarType type) {
  struct Format {
    int64_t bits;      ///< number of stored bits of the mantissa
    int64_t smallest;  ///< smallest exponent of normal numbers
  };
  const Format format = type == at::kBFloat16 ? Format{7, -126}
                        : type == at::kHalf   ? Format{10, -14}
                        : type == at::kFloat  ? Format{23, -126}
                                              : Format{52, -1022};
  const Tensor exponents = std::get<1>(at::frexp(numbers)) - 1;
  const Tensor normal = exponents.clamp_min(format.smallest).masked_fill(numbers == 0, format.smallest);
  return at::exp2((normal - format.bits).to(at::kDouble));
}

/// Returns the largest singular value that rounding can explain. For independent errors its mean is at most the root of
/// the largest row's sum of variances plus that of the largest column's. An error is either uniform over a step, or is
/// the reason why a number did not change at all, so no row has more error than change.
double rounding_noise(const Tensor& change, const Tensor& after, at::ScalarType type) {
  Tensor columns = torch::zeros({change.size(1)}, change.options());
  double largest_row = 0;
  for (int64_t row = 0; row < change.size(0); row += kRowsAtOnce) {
    const int64_t end = std::min(row + kRowsAtOnce, change.size(0));
    const Tensor variances = steps_of(after.slice(0, row, end).to(at::kDouble), type).square_().div_(12);
    const Tensor changed = change.slice(0, row, end).square().sum(1);
    largest_row = std::max(largest_row, at::minimum(variances.sum(1), changed).max().item<double>());
    columns += variances.sum(0);
  }
  const double largest_column = at::minimum(columns, change.square().sum(0)).max().item<double>();
  return kAboveAverage * (std::sqrt(largest_row) + std::sqrt(largest_column));
}

/// Returns the largest singular value that white noise can explain, if the change has fewer directions than half of the
/// matrix's shorter side.
double noise_by_spectrum(const std::vector<double>& values, int64_t rows, int64_t columns) {
  const int64_t shorter = std::min(rows, columns);
  const auto middle = static_cast<size_t>(shorter / 2);
  if (middle >= values.size()) return 0;
  const double ratio = static_cast<double>(shorter) / static_cast<double>(std::max(rows, columns));
  return (((0.56 * ratio - 0.95) * ratio + 1.82) * ratio + 1.43) * values[middle];
}

}  // namespace

std::string_view rank_rule_name(RankRule rule) {
  switch (rule) {
    case RankRule::kTolerance:
      return "tolerance";
    case RankRule::kRounding:
      return "rounding";
    case RankRule::kSpectrum:
      return "spectrum";
  }
  throw std::logic_error("no such rule");
}

double ChangeSpectrum::norm_beyond(int64_t directions) const {
  double sum = rest * rest;
  for (size_t i = values.size(); i-- > static_cast<size_t>(directions);) sum += values[i] * values[i];
  return std::sqrt(sum);
}

double ChangeSpectrum::energy(int64_t directions) const {
  const double all = norm();
  if (all == 0) return 1;
  const double beyond = norm_beyond(directions) / all;
  return 1 - beyond * beyond;
}

bool ChangeSpectrum::is_low_rank() const { return rank > 0 && rank * (outputs + inputs) < outputs * inputs; }

ChangeSize change_size(const Tensor& before, const Tensor& after) {
  const Tensor change = difference(before, after);
  return {.norm = change.norm().item<double>(),
          .weight_norm = before.to(at::kDouble).norm().item<double>(),
          .changed = change.count_nonzero().item<int64_t>()};
}

ChangeSpectrum change_spectrum(const Tensor& before, const Tensor& after, std::optional<at::ScalarType> rounded_to) {
  if (before.dim() != 2 || before.sizes() != after.sizes())
    throw std::logic_error("difference of two weights: expected matrices of one shape");
  ChangeSpectrum spectrum{.outputs = before.size(0), .inputs = before.size(1)};
  Tensor change = difference(before, after);
  const double norm = change.norm().item<double>();
  const bool is_tall = change.size(0) > change.size(1);
  if (rounded_to && norm > 0) spectrum.noise = rounding_noise(change, after, *rounded_to);
  FoundDirections found;
  if (norm > 0) {
    Tensor rest = is_tall ? change.t().contiguous() : std::move(change);
    change = Tensor();
    for (int round = 0; round < 2 && found.count < rest.size(0); ++round) take_directions(rest, found);
    spectrum.rest = rest.norm().item<double>();
  }
  const auto options = torch::TensorOptions(before.device()).dtype(at::kDouble);
  Tensor left = torch::zeros({std::min(before.size(0), before.size(1)), 0}, options);
  Tensor right = torch::zeros({0, std::max(before.size(0), before.size(1))}, options);
  Tensor values = torch::zeros({0}, options);
  if (!found.left.empty()) {
    left = torch::cat(found.left, 1);
    right = torch::cat(found.right, 0);
    values = torch::cat(found.values);
    const Tensor order = std::get<1>(values.sort(/*dim=*/0, /*descending=*/true));
    left = left.index_select(1, order);
    right = right.index_select(0, order);
    values = values.index_select(0, order);
  }
  spectrum.values = to_doubles(values);
  if (!rounded_to) spectrum.noise = noise_by_spectrum(spectrum.values, before.size(0), before.size(1));

  int64_t by_tolerance = 0, above_noise = 0;
  const auto count = static_cast<int64_t>(spectrum.values.size());
  while (by_tolerance < count && spectrum.norm_beyond(by_tolerance) > kRankTolerance * norm) ++by_tolerance;
  while (above_noise < count && spectrum.values[static_cast<size_t>(above_noise)] > spectrum.noise) ++above_noise;
  spectrum.rank = std::min(by_tolerance, above_noise);
  if (above_noise < by_tolerance) spectrum.rule = rounded_to ? RankRule::kRounding : RankRule::kSpectrum;

  const Tensor roots = values.slice(0, 0, spectrum.rank).sqrt();
  const Tensor own_left = left.slice(1, 0, spectrum.rank) * roots;
  const Tensor own_right = right.slice(0, 0, spectrum.rank) / roots.unsqueeze(1);
  spectrum.factors =
      is_tall ? LowRankDelta{own_right.t().contiguous(), own_left.t().contiguous()} : LowRankDelta{own_left, own_right};
  return spectrum;
}

}  // namespace lancet
