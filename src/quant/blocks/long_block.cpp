// Searches scales and codes of a block with a small sum of squared errors:
// 1. Each part by itself: the codes for several scales, and then the scale and the least number of least squares for
//    these codes, a few times in turn.
// 2. Candidates for the scale of the block: the scales of the parts are near whole multiples of it. Then candidates for
//    the least number of the block in the same way.
// 3. Each part takes the multiples nearby with the least error, and the nearest codes.
// 4. The two best pairs of candidates: least squares for the two numbers of the block, and step 3 again, while the
//    error falls.
// Step 1 follows make_qkx2_quants and make_qx_quants of llama.cpp (ggml-quants.c). Differences: no weights, several
// turns, and steps 2 to 4, where llama.cpp divides the largest scale by the largest multiple and rounds once.
#include "long_block.h"

#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace lancet {
namespace {

constexpr int kLanes = 8;  // sums beside each other, so that the compiler uses vectors
constexpr float kSmallestHalf = 0x1p-24F;
/// Of numbers that the type cannot hold.
constexpr LongBlock kBeyondAll{.scale = std::numeric_limits<float>::infinity(), .factors = {1}};

float inverse_of(float number) {
  const float inverse = 1 / number;
  return std::isfinite(inverse) ? inverse : 0;
}

struct CodeRange {
  float least, most;
};
CodeRange codes_of(const LongBlockShape& shape) {
  return {static_cast<float>(shape.least_code), static_cast<float>(shape.most_code)};
}

float nearest_code(float number, float low, float inverse, CodeRange range) {
  constexpr float kToWhole = 0x1.8p23F;  // after adding it, a number of f32 has no fraction
  float code = (number + low) * inverse;
  code = code < range.least ? range.least : code;
  code = code > range.most ? range.most : code;
  return code + kToWhole - kToWhole;
}

float sum_of(const float* lanes) {
  return (lanes[0] + lanes[4]) + (lanes[1] + lanes[5]) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

/// A part's numbers, and what does not depend on codes.
struct Part {
  const float* numbers;
  int size;
  CodeRange range;
  double sum = 0, sum_of_squares = 0;
};

/// Sums over a part with its nearest codes.
struct CodeSums {
  float codes, squares, products;  ///< of q, q^2 and x q
};
CodeSums sums_with(const Part& part, float low, float inverse) {
  float codes[kLanes] = {}, squares[kLanes] = {}, products[kLanes] = {};
  for (int i = 0; i < part.size; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) {
      const float number = part.numbers[i + lane], code = nearest_code(number, low, inverse, part.range);
      codes[lane] += code;
      squares[lane] += code * code;
      products[lane] += number * code;
    }
  return {sum_of(codes), sum_of(squares), sum_of(products)};
}

float error_with(const Part& part, float by, float low) {
  const float inverse = inverse_of(by);
  float errors[kLanes] = {};
  for (int i = 0; i < part.size; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) {
      const float number = part.numbers[i + lane];
      const float error = by * nearest_code(number, low, inverse, part.range) - low - number;
      errors[lane] += error * error;
    }
  return sum_of(errors);
}

/// A part's own scale and least number, as real numbers.
struct PartFit {
  float by = 0, low = 0;
  double weight = 0;  ///< how much an error of `by` costs: the sum of q^2
  double error = std::numeric_limits<double>::infinity();
};

/// Least squares for x = by * q - low, where low is not below 0.
PartFit least_squares(const Part& part, const CodeSums& sums, bool has_least) {
  const double n = part.size, q = sums.codes, qq = sums.squares, xq = sums.products, x = part.sum;
  PartFit fit{.weight = qq};
  double by = qq > 0 ? xq / qq : 0, low = 0, error = part.sum_of_squares - by * xq;
  if (const double determinant = n * qq - q * q; has_least && determinant > 1e-6 * n * qq) {
    const double own_by = (n * xq - q * x) / determinant, own_low = (q * xq - qq * x) / determinant;
    if (own_low >= 0) {
      by = own_by, low = own_low;
      error = part.sum_of_squares - by * xq + low * x;
    }
  }
  fit.by = static_cast<float>(by), fit.low = static_cast<float>(low), fit.error = error;
  return fit;
}

PartFit fit_part(const Part& part, const LongBlockShape& shape) {
  const auto [least, most] = std::minmax_element(part.numbers, part.numbers + part.size);
  const bool has_least = shape.has_least();
  const float low = has_least ? std::max(0.0F, -*least) : 0;
  const float largest = has_least ? *most + low : std::abs(*least) > std::abs(*most) ? -*least : -*most;
  const auto span = static_cast<float>(has_least ? shape.most_code : -shape.least_code);
  PartFit best{.low = low, .error = part.sum_of_squares};
  if (largest == 0) return best;
  for (int step = -10; step <= 10; ++step) {
    const float inverse = (span + 0.1F * static_cast<float>(step)) / largest;
    PartFit fit = least_squares(part, sums_with(part, low, inverse), has_least);
    for (int again = 0; again < 3; ++again) {
      const PartFit next = least_squares(part, sums_with(part, fit.low, inverse_of(fit.by)), has_least);
      if (next.error >= fit.error) break;
      fit = next;
    }
    if (fit.error < best.error) best = fit;
  }
  return best;
}

struct Weighted {
  double value, weight;
};

/// Of the numbers in f16 whose multiples the largest value can be, those two that all values come nearest to
/// multiples of. The least multiple is below 0 or 0.
std::vector<float> bases_of(const std::vector<Weighted>& values, int least, int most) {
  double largest = 0;
  for (const Weighted& one : values)
    if (std::abs(one.value) > std::abs(largest)) largest = one.value;
  if (largest == 0) return {0};
  const int end = least < 0 ? -least : most;
  std::vector<std::pair<double, float>> found;
  for (int multiple = end; multiple > end / 2; --multiple) {
    const float base = scale_in_f16(static_cast<float>(largest / (least < 0 ? -multiple : multiple)));
    double error = 0;
    for (const Weighted& one : values) {
      const double own = std::clamp(std::round(one.value / base), double(least), double(most)) * base - one.value;
      error += one.weight * own * own;
    }
    found.emplace_back(error, base);
  }
  std::vector<float> bases{found.front().second};
  std::ranges::sort(found);
  for (size_t i = 0; i < std::min<size_t>(found.size(), 2); ++i)
    if (std::ranges::find(bases, found[i].second) == bases.end()) bases.push_back(found[i].second);
  return bases;
}

struct Chosen {
  LongBlock block = kBeyondAll;
  double error = std::numeric_limits<double>::infinity();
};

class BlockSearch {
 public:
  BlockSearch(const float* numbers, const LongBlockShape& shape) : shape_(shape) {
    for (int p = 0; p < shape.parts; ++p) {
      Part part{.numbers = numbers + p * shape.part_size(), .size = shape.part_size(), .range = codes_of(shape)};
      for (int i = 0; i < part.size; ++i) {
        const double number = part.numbers[i];
        part.sum += number, part.sum_of_squares += number * number;
      }
      parts_.push_back(part);
      fits_.push_back(fit_part(part, shape));
    }
  }

  LongBlock best() {
    std::vector<Weighted> scales;
    for (const PartFit& fit : fits_) scales.push_back({fit.by, fit.weight});
    std::vector<Chosen> found;
    for (const float scale : bases_of(scales, shape_.least_factor, shape_.most_factor))
      for (const float least : leasts_beside(scale)) found.push_back(with(scale, least, 0));
    std::ranges::sort(found, {}, &Chosen::error);
    for (size_t i = 0; i < std::min<size_t>(found.size(), 2); ++i)
      refine(with(found[i].block.scale, found[i].block.least, 1));
    return best_.block;
  }

 private:
  size_t parts() const { return parts_.size(); }

  int factor_of(float by, float scale) const {
    if (scale == 0) return 0;
    return static_cast<int>(std::clamp(std::round(by / scale), float(shape_.least_factor), float(shape_.most_factor)));
  }

  /// The least number of least squares for the nearest codes.
  static float low_beside(const Part& part, float by, float low) {
    if (by == 0) return std::max(0.0F, static_cast<float>(-part.sum / part.size));
    const double codes = sums_with(part, low, inverse_of(by)).codes;
    return std::max(0.0F, static_cast<float>((by * codes - part.sum) / part.size));
  }

  std::vector<float> leasts_beside(float scale) const {
    if (!shape_.has_least()) return {0};
    std::vector<Weighted> lows;
    for (size_t p = 0; p < parts(); ++p) {
      const float by = scale * static_cast<float>(factor_of(fits_[p].by, scale));
      lows.push_back({low_beside(parts_[p], by, fits_[p].low), 1});
    }
    return bases_of(lows, 0, shape_.most_least);
  }

  /// The factors nearby with the least error.
  double choose_factors(size_t p, int reach, LongBlock& block) const {
    const Part& part = parts_[p];
    const int middle = factor_of(fits_[p].by, block.scale);
    double best = std::numeric_limits<double>::infinity();
    for (int factor = std::max(middle - reach, shape_.least_factor);
         factor <= std::min(middle + reach, shape_.most_factor); ++factor) {
      const float by = block.scale * static_cast<float>(factor);
      int from = 0, to = 0;
      if (block.least > 0) {
        const float low = low_beside(part, by, fits_[p].low) / block.least;
        from = static_cast<int>(std::clamp(std::floor(low), 0.0F, static_cast<float>(shape_.most_least)));
        to = std::min(from + 1, shape_.most_least);
      }
      for (int least = from; least <= to; ++least) {
        const double error = error_with(part, by, block.least * static_cast<float>(least));
        if (error >= best) continue;
        best = error;
        block.factors[p] = factor, block.leasts[p] = least;
      }
    }
    return best;
  }

  /// With the factors and codes that are best beside these two numbers.
  Chosen with(float scale, float least, int reach) const {
    Chosen chosen{.block = {.scale = scale, .least = least}, .error = 0};
    if (!std::isfinite(scale) || !std::isfinite(least)) return {};
    for (size_t p = 0; p < parts(); ++p) chosen.error += choose_factors(p, reach, chosen.block);
    return chosen;
  }

  void refine(Chosen chosen) {
    for (int round = 0; round < 4 && std::isfinite(chosen.error); ++round) {
      if (chosen.error < best_.error) best_ = chosen;
      const auto [scale, least] = block_squares(chosen.block);
      const Chosen next = with(scale, least, 1);
      if (next.error >= chosen.error) return;
      chosen = next;
    }
  }

  /// Least squares for the block's scale and least number with the codes that are nearest now.
  std::pair<float, float> block_squares(const LongBlock& block) const {
    double uu = 0, uv = 0, vv = 0, xu = 0, xv = 0;  // x = scale u - least v, with u = factor q
    for (size_t p = 0; p < parts(); ++p) {
      const double factor = block.factors[p], v = block.leasts[p];
      const float by = block.scale * static_cast<float>(factor);
      const CodeSums sums = sums_with(parts_[p], block.least * static_cast<float>(v), inverse_of(by));
      uu += factor * factor * sums.squares, uv += factor * v * sums.codes, vv += v * v * parts_[p].size;
      xu += factor * sums.products, xv += v * parts_[p].sum;
    }
    if (vv == 0) return {scale_in_f16(static_cast<float>(uu > 0 ? xu / uu : 0)), 0.0F};
    if (uu == 0) return {0.0F, scale_in_f16(static_cast<float>(std::max(0.0, -xv / vv)))};
    const double determinant = uu * vv - uv * uv;
    if (determinant <= 1e-9 * uu * vv) return {block.scale, block.least};
    const double scale = (xu * vv - xv * uv) / determinant, least = (xu * uv - xv * uu) / determinant;
    return {scale_in_f16(static_cast<float>(scale)), scale_in_f16(static_cast<float>(std::max(0.0, least)))};
  }

  LongBlockShape shape_;
  std::vector<Part> parts_;
  std::vector<PartFit> fits_;
  Chosen best_;
};

}  // namespace

float scale_in_f16(float scale) {
  if (scale == 0) return 0;
  const auto rounded = static_cast<float>(c10::Half(scale));
  return rounded == 0 ? std::copysign(kSmallestHalf, scale) : rounded;
}

void choose_codes(const float* numbers, const LongBlockShape& shape, int part, LongBlock& block) {
  const auto p = static_cast<size_t>(part);
  const float inverse = inverse_of(block.scale * static_cast<float>(block.factors[p]));
  const float low = block.least * static_cast<float>(block.leasts[p]);
  for (int i = part * shape.part_size(); i < (part + 1) * shape.part_size(); ++i)
    block.codes[static_cast<size_t>(i)] = static_cast<int>(nearest_code(numbers[i], low, inverse, codes_of(shape)));
}

LongBlock search_long_block(const float* numbers, const LongBlockShape& shape) {
  float largest = 0;
  for (int i = 0; i < kLongBlock; ++i) largest = std::max(largest, std::abs(numbers[i]));
  if (largest < kSmallestHalf / 2) return {};  // 0 is nearer than any other number
  constexpr float kBeyond = 1e9F;              // more than any type can hold: 65504 * 128 * 32 at most
  if (largest > kBeyond) return kBeyondAll;
  if (std::optional<LongBlock> exact = find_exact_block(numbers, shape)) return *exact;
  LongBlock block = BlockSearch(numbers, shape).best();
  for (int part = 0; part < shape.parts; ++part) choose_codes(numbers, shape, part, block);
  return block;
}

}  // namespace lancet
