// Finds the scales of a block again whose numbers were decoded from one. The numbers of a part lie on a lattice: they
// are whole multiples of a step above the part's least number, or above 0 where the type has no least numbers. So:
// 1. the steps that a part can have: its range over a whole number, where all numbers fall on multiples;
// 2. a scale in f16 of which a step of each part is a whole multiple;
// 3. a least number in f16 of which the least number of each part is a whole multiple, for one of the codes that the
//    part's least number can have.
// What is found is decoded, and counts only if all numbers are equal.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "long_block.h"

namespace lancet {
namespace {

/// How far a multiple may be from a whole number: numbers have 24 bits.
constexpr double kTolerance = 1e-3;

bool is_whole(double number, double tolerance) { return std::abs(number - std::round(number)) <= tolerance; }

/// A part whose numbers lie on a lattice.
struct LatticePart {
  const float* numbers;
  double origin = 0, range = 0;  ///< where the lattice begins, and how far the numbers go from there
  double noise = 0;              ///< how much a number can be off by rounding
  std::vector<int> steps = {};   ///< numbers of steps that the range can have; empty: all numbers are equal
};

/// A way to have a part's numbers.
struct PartWay {
  int factor;
  double low;  ///< its least number
};

class ExactSearch {
 public:
  ExactSearch(const float* numbers, const LongBlockShape& shape) : numbers_(numbers), shape_(shape) {}

  std::optional<LongBlock> find() {
    for (int p = 0; p < shape_.parts; ++p)
      if (!add_part(numbers_ + p * shape_.part_size())) return std::nullopt;
    for (const float scale : scales()) {
      if (std::optional<LongBlock> block = with_scale(scale)) return block;
      if (shape_.has_least()) continue;
      if (std::optional<LongBlock> block = with_scale(-scale)) return block;  // the least factor has no opposite
    }
    return std::nullopt;
  }

 private:
  int most_steps() const { return shape_.has_least() ? shape_.most_code : -shape_.least_code; }
  int most_factor() const { return std::max(shape_.most_factor, -shape_.least_factor); }

  /// Whether the part's numbers lie on a lattice.
  bool add_part(const float* numbers) {
    const auto [least, most] = std::minmax_element(numbers, numbers + shape_.part_size());
    LatticePart part{.numbers = numbers};
    const double largest = std::max(std::abs(*least), std::abs(*most));
    part.origin = shape_.has_least() ? *least : 0;
    part.range = shape_.has_least() ? double(*most) - *least : largest;
    part.noise = largest * 0x1p-23;
    if (part.range > 0) {
      for (int steps = 1; steps <= most_steps(); ++steps) {
        const double by = steps / part.range, tolerance = kTolerance + part.noise * by;
        if (tolerance < 0.1 && std::all_of(numbers, numbers + shape_.part_size(),
                                           [&](float x) { return is_whole((x - part.origin) * by, tolerance); }))
          part.steps.push_back(steps);
      }
      if (part.steps.empty()) return false;
    }
    parts_.push_back(part);
    return true;
  }

  /// The numbers in f16 that `value` can be a whole multiple of.
  static void add_bases(double value, double noise, int most, std::vector<float>& bases) {
    for (int multiple = 1; multiple <= most; ++multiple) {
      const float base = scale_in_f16(static_cast<float>(value / multiple));
      if (!std::isfinite(base) || std::abs(base * double(multiple) - value) > 1e-6 * value + noise) continue;
      if (std::ranges::find(bases, base) == bases.end()) bases.push_back(base);
    }
  }

  /// Candidates, of the part that leaves the fewest.
  std::vector<float> scales() const {
    const LatticePart* chosen = nullptr;
    for (const LatticePart& part : parts_)
      if (!part.steps.empty() && (chosen == nullptr || part.steps.size() < chosen->steps.size())) chosen = &part;
    std::vector<float> bases;
    if (chosen != nullptr) {
      for (const int steps : chosen->steps)
        add_bases(chosen->range / steps, chosen->noise / steps, most_factor(), bases);
      return bases;
    }
    double highest = 0;  // parts of equal numbers: those above 0 are multiples of the scale
    for (const LatticePart& part : parts_) highest = std::max(highest, part.origin);
    if (highest > 0) add_bases(highest, 0, most_factor(), bases);
    if (highest == 0) bases.push_back(0);
    return bases;
  }

  /// All ways to have the part's numbers with this scale, whatever the block's least number is.
  std::vector<PartWay> ways_of(const LatticePart& part, float scale) const {
    std::vector<PartWay> ways;
    for (const int steps : part.steps) {
      const double step = part.range / steps, multiple = step / std::abs(scale);
      if (multiple > most_factor() + 0.5) continue;
      const int factor = static_cast<int>(std::round(multiple));
      if (factor < 1 || !is_whole(multiple, kTolerance + part.noise / std::abs(scale))) continue;
      if (!shape_.has_least()) {
        ways.push_back({factor, 0});
        continue;
      }
      for (int code = 0; code + steps <= shape_.most_code; ++code) {
        const double low = double(scale) * factor * code - part.origin;
        if (low >= -part.noise) ways.push_back({factor, low <= part.noise ? 0 : low});
      }
    }
    if (part.steps.empty()) add_ways_of_equal(part, scale, ways);
    return ways;
  }

  /// Of a part whose numbers are all equal: a least number alone, or a multiple of the scale alone.
  void add_ways_of_equal(const LatticePart& part, float scale, std::vector<PartWay>& ways) const {
    if (part.origin <= 0) return ways.push_back({0, -part.origin});
    const double multiple = part.origin / scale;
    for (int factor = 1; factor <= shape_.most_factor; ++factor)
      if (const double code = multiple / factor; code < shape_.most_code + 0.5 && is_whole(code, 1e-5))
        ways.push_back({factor, 0});
  }

  std::optional<LongBlock> with_scale(float scale) const {
    std::vector<std::vector<PartWay>> ways;
    for (const LatticePart& part : parts_) {
      ways.push_back(ways_of(part, scale));
      if (ways.back().empty()) return std::nullopt;
    }
    if (!shape_.has_least()) return with_ways(scale, 0, ways);
    for (const float least : leasts(ways))
      if (std::optional<LongBlock> block = with_ways(scale, least, ways)) return block;
    return std::nullopt;
  }

  /// Candidates, of the part with the fewest ways among those that cannot be without a least number.
  std::vector<float> leasts(const std::vector<std::vector<PartWay>>& ways) const {
    const auto needs_one = [](const std::vector<PartWay>& own) {
      return std::ranges::none_of(own, [](const PartWay& way) { return way.low == 0; });
    };
    size_t chosen = ways.size();
    for (size_t p = 0; p < ways.size(); ++p)
      if (needs_one(ways[p]) && (chosen == ways.size() || ways[p].size() < ways[chosen].size())) chosen = p;
    if (chosen == ways.size()) return {0};
    std::vector<float> bases;
    for (const PartWay& way : ways[chosen]) add_bases(way.low, parts_[chosen].noise, shape_.most_least, bases);
    return bases;
  }

  std::optional<LongBlock> with_ways(float scale, float least, const std::vector<std::vector<PartWay>>& ways) const {
    LongBlock block{.scale = scale, .least = least};
    for (size_t p = 0; p < ways.size(); ++p) {
      const bool found = std::ranges::any_of(ways[p], [&](const PartWay& way) { return has(p, way, block); });
      if (!found) return std::nullopt;
    }
    return block;
  }

  /// Whether the part's numbers are decoded from this way, which the block then has.
  bool has(size_t p, const PartWay& way, LongBlock& block) const {
    const double multiple = way.low == 0 ? 0 : way.low / block.least;
    if (multiple > shape_.most_least + 0.5) return false;
    if (way.low != 0 && !is_whole(multiple, kTolerance + 2 * parts_[p].noise / block.least)) return false;
    block.leasts[p] = static_cast<int>(std::round(multiple));
    for (const int factor : {way.factor, -way.factor}) {
      if (factor < shape_.least_factor || factor > shape_.most_factor) continue;
      block.factors[p] = factor;
      choose_codes(numbers_, shape_, static_cast<int>(p), block);
      if (is_equal(static_cast<int>(p), block)) return true;
    }
    return false;
  }

  bool is_equal(int part, const LongBlock& block) const {
    const auto p = static_cast<size_t>(part);
    const float by = block.scale * static_cast<float>(block.factors[p]);
    const float low = block.least * static_cast<float>(block.leasts[p]);
    for (int i = part * shape_.part_size(); i < (part + 1) * shape_.part_size(); ++i)
      if (by * static_cast<float>(block.codes[static_cast<size_t>(i)]) - low != numbers_[i]) return false;
    return true;
  }

  const float* numbers_;
  LongBlockShape shape_;
  std::vector<LatticePart> parts_;
};

}  // namespace

std::optional<LongBlock> find_exact_block(const float* numbers, const LongBlockShape& shape) {
  return ExactSearch(numbers, shape).find();
}

}  // namespace lancet
