// Blocks of 256 numbers as Q2_K to Q6_K have them: the numbers of part p are
//   scale * factors[p] * code - least * leasts[p]
// with whole factors, and the scale and the least number in f16.
// Source: ggml-org/ggml, src/ggml-common.h (block_q2_K to block_q6_K).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace lancet {

inline constexpr int kLongBlock = 256;

/// Which blocks a type can have.
struct LongBlockShape {
  int parts;                      ///< of one size
  int least_code, most_code;      ///< inclusive
  int least_factor, most_factor;  ///< inclusive
  int most_least;                 ///< largest of `leasts`; 0: the type has no least numbers

  int part_size() const { return kLongBlock / parts; }
  bool has_least() const { return most_least > 0; }
};

struct LongBlock {
  float scale = 0, least = 0;
  std::array<int, 16> factors{}, leasts{};
  std::array<int, kLongBlock> codes{};
};

/// The nearest number that f16 has. Of numbers above 0 the smallest such number is the least result, so that a scale
/// does not vanish.
float scale_in_f16(float scale);

/// Sets the codes that come nearest to the numbers of a part.
void choose_codes(const float* numbers, const LongBlockShape& shape, int part, LongBlock& block);

/// A block with a small sum of squared errors. Numbers beyond what the type can hold have the scale infinity.
/// `numbers`: 256 finite ones.
LongBlock search_long_block(const float* numbers, const LongBlockShape& shape);

/// A block that has these very numbers, as after decoding one; nullopt where none is found. Defined in exact_block.cpp.
std::optional<LongBlock> find_exact_block(const float* numbers, const LongBlockShape& shape);

}  // namespace lancet
