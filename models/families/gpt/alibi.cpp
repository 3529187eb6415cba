#include "alibi.h"

#include <bit>
#include <cmath>

namespace lancet {
namespace {

/// The smallest slope is 2^-kMost.
constexpr double kMost = 8;

/// Adds 2^(-kMost * i / count) for i = first, first + step, ..., at most `n` numbers.
void add_powers(int64_t count, int64_t first, int64_t step, int64_t n, std::vector<double>& slopes) {
  for (int64_t i = first; i <= count && n > 0; i += step, --n)
    slopes.push_back(std::exp2(-kMost * static_cast<double>(i) / static_cast<double>(count)));
}

}  // namespace

std::vector<double> alibi_slopes(int64_t n_heads) {
  const auto whole = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n_heads)));
  std::vector<double> slopes;
  add_powers(whole, 1, 1, whole, slopes);
  add_powers(2 * whole, 1, 2, n_heads - whole, slopes);
  return slopes;
}

std::vector<double> mpt_slopes(int64_t n_heads) {
  const auto whole = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n_heads)));
  std::vector<double> slopes;
  if (whole != n_heads) add_powers(whole, 2, 2, n_heads, slopes);
  add_powers(whole, 1, whole == n_heads ? 1 : 2, n_heads - std::ssize(slopes), slopes);
  return slopes;
}

}  // namespace lancet
