// Source of Q8_0, Q4_0, Q4_1, Q5_0 and Q5_1: gguf 0.19, quants.py (quantize_blocks): scales in f32, numbers over their
// inverse, rounded away from zero, and only then the scale to f16.
// IQ4_NL and MXFP4 have the scale with the least sum of squared errors among some. The gguf package has one scale for
// MXFP4, which is among them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "decoders.h"
#include "encoders.h"
#include "long_block.h"

namespace lancet {
namespace {

constexpr int kBlockNumbers = 32;

/// Of scales whose inverse f32 does not hold, 0: f16 has none of them.
float inverse(float scale) { return std::isfinite(1 / scale) ? 1 / scale : 0; }

float largest_magnitude(const float* numbers) {
  float largest = 0;
  for (int i = 0; i < kBlockNumbers; ++i) largest = std::max(largest, std::abs(numbers[i]));
  return largest;
}

void encode_q8_0(const float* numbers, uint8_t* block) {
  const float scale = largest_magnitude(numbers) / 127, by = inverse(scale);
  put_half(block, scale);
  for (int i = 0; i < kBlockNumbers; ++i)
    block[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(std::round(numbers[i] * by)));
}

/// The number of the largest magnitude with its sign, the first of equals.
float signed_largest(const float* numbers) {
  float largest = numbers[0];
  for (int i = 1; i < kBlockNumbers; ++i)
    if (std::abs(numbers[i]) > std::abs(largest)) largest = numbers[i];
  return largest;
}

/// Codes without a sign, of numbers on both sides of 0.
void codes_around(const float* numbers, float scale, float middle, int most, int* codes) {
  const float by = inverse(scale);
  for (int i = 0; i < kBlockNumbers; ++i)
    codes[i] = std::clamp(static_cast<int>(std::trunc(numbers[i] * by + middle)), 0, most);
}

void codes_above(const float* numbers, float least, float scale, int most, int* codes) {
  const float by = inverse(scale);
  for (int i = 0; i < kBlockNumbers; ++i)
    codes[i] = std::clamp(static_cast<int>(std::trunc((numbers[i] - least) * by + 0.5F)), 0, most);
}

void put_low_bits(const int* codes, uint8_t* to) {
  for (int i = 0; i < 16; ++i) to[i] = static_cast<uint8_t>((codes[i] & 15) | (codes[16 + i] & 15) << 4);
}

void put_fifth_bits(const int* codes, uint8_t* to) {
  uint32_t bits = 0;
  for (int i = 0; i < kBlockNumbers; ++i) bits |= static_cast<uint32_t>(codes[i] >> 4 & 1) << i;
  std::memcpy(to, &bits, sizeof(bits));
}

void encode_q4_0(const float* numbers, uint8_t* block) {
  int codes[kBlockNumbers];
  const float scale = signed_largest(numbers) / -8;
  codes_around(numbers, scale, 8.5F, 15, codes);
  put_half(block, scale);
  put_low_bits(codes, block + 2);
}

void encode_q5_0(const float* numbers, uint8_t* block) {
  int codes[kBlockNumbers];
  const float scale = signed_largest(numbers) / -16;
  codes_around(numbers, scale, 16.5F, 31, codes);
  put_half(block, scale);
  put_fifth_bits(codes, block + 2);
  put_low_bits(codes, block + 6);
}

void encode_q4_1(const float* numbers, uint8_t* block) {
  int codes[kBlockNumbers];
  const auto [least, most] = std::minmax_element(numbers, numbers + kBlockNumbers);
  const float scale = (*most - *least) / 15;
  codes_above(numbers, *least, scale, 15, codes);
  put_half(block, scale);
  put_half(block + 2, *least);
  put_low_bits(codes, block + 4);
}

void encode_q5_1(const float* numbers, uint8_t* block) {
  int codes[kBlockNumbers];
  const auto [least, most] = std::minmax_element(numbers, numbers + kBlockNumbers);
  const float scale = (*most - *least) / 31;
  codes_above(numbers, *least, scale, 31, codes);
  put_half(block, scale);
  put_half(block + 2, *least);
  put_fifth_bits(codes, block + 4);
  put_low_bits(codes, block + 8);
}

/// Codes of a block for one scale, and what they cost.
struct TableBlock {
  float scale = 0;
  int codes[kBlockNumbers] = {};
  double error = std::numeric_limits<double>::infinity();
};
void add_error(const std::array<float, 16>& table, const float* numbers, TableBlock& block) {
  block.error = 0;
  for (int i = 0; i < kBlockNumbers; ++i) {
    const double error = double(block.scale * table[static_cast<size_t>(block.codes[i])]) - numbers[i];
    block.error += error * error;
  }
}

/// Of two numbers of MXFP4 that are as near, the first, as in the gguf package.
TableBlock mxfp4_block(float scale, const float* numbers) {
  TableBlock block{.scale = scale};
  for (int i = 0; i < kBlockNumbers; ++i) {
    const auto distance = [&](int code) {
      return std::abs(scale * kDoubleE2m1Numbers[static_cast<size_t>(code)] - numbers[i]);
    };
    for (int code = 1; code < 16; ++code)
      if (distance(code) < distance(block.codes[i])) block.codes[i] = code;
  }
  add_error(kDoubleE2m1Numbers, numbers, block);
  return block;
}

TableBlock iq4_block(float scale, const float* numbers) {
  TableBlock block{.scale = scale};
  const float by = inverse(scale);
  for (size_t code = 1; code < kIq4Numbers.size(); ++code) {
    const float middle = (kIq4Numbers[code - 1] + kIq4Numbers[code]) / 2;
    for (int i = 0; i < kBlockNumbers; ++i) block.codes[i] += numbers[i] * by > middle ? 1 : 0;
  }
  add_error(kIq4Numbers, numbers, block);
  return block;
}

/// The scale of least squares for the codes of a block.
float scale_of_codes(const TableBlock& block, const float* numbers) {
  double products = 0, squares = 0;
  for (int i = 0; i < kBlockNumbers; ++i) {
    const double number = kIq4Numbers[static_cast<size_t>(block.codes[i])];
    products += number * numbers[i], squares += number * number;
  }
  return static_cast<float>(products / squares);
}

/// Scales by which the largest number becomes one of the table's, and those of least squares beside them.
void encode_iq4_nl(const float* numbers, uint8_t* block) {
  TableBlock best = iq4_block(0, numbers);
  const auto take = [&](float scale) {
    const TableBlock found = iq4_block(scale_in_f16(scale), numbers);
    if (found.error < best.error) best = found;
    return found;
  };
  const float largest = signed_largest(numbers);
  if (std::isinf(scale_in_f16(largest / 127))) best.scale = std::numeric_limits<float>::infinity();
  for (size_t i = 0; best.error > 0 && i < kIq4Numbers.size(); ++i) {
    if (std::isinf(scale_in_f16(largest / kIq4Numbers[i]))) continue;
    const TableBlock found = take(largest / kIq4Numbers[i]);
    take(scale_of_codes(found, numbers));
  }
  put_half(block, best.scale);
  put_low_bits(best.codes, block + 2);
}

void encode_mxfp4(const float* numbers, uint8_t* block) {
  const float largest = largest_magnitude(numbers);
  const int middle = largest == 0 ? 0 : std::ilogb(largest) - 2 + 127;
  TableBlock best;
  for (int exponent = std::max(middle - 1, 0); exponent <= std::max(middle + 1, 0); ++exponent) {
    const TableBlock found = mxfp4_block(half_of_e8m0(static_cast<uint8_t>(exponent)), numbers);
    if (found.error >= best.error) continue;
    best = found;
    block[0] = static_cast<uint8_t>(exponent);
  }
  put_low_bits(best.codes, block + 1);
}

constexpr BlockEncoder kShortEncoders[] = {{"Q8_0", encode_q8_0},  {"Q4_0", encode_q4_0}, {"Q4_1", encode_q4_1},
                                           {"Q5_0", encode_q5_0},  {"Q5_1", encode_q5_1}, {"IQ4_NL", encode_iq4_nl},
                                           {"MXFP4", encode_mxfp4}};

}  // namespace

std::span<const BlockEncoder> short_block_encoders() { return kShortEncoders; }

}  // namespace lancet
