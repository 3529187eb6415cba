// The numbers that formats are made of. Source: bitsandbytes, functional.py (get_4bit_type), backends/default/ops.py.
#pragma once

#include <array>

#include "lancet/quant_formats/packed_spec.h"

namespace lancet {

/// What bitsandbytes multiplies codes of 8 bits by, nearly 1 / 127.
inline constexpr double kInt8Factor = 7.874015718698502e-3;
/// The largest magnitude of a whole number of a byte, -128.
inline constexpr double kLargestOfSignedByte = 128;
/// Largest number of E4M3.
inline constexpr double kLargestFloat8 = 448;
/// Largest number of E2M1.
inline constexpr double kLargestFloat4 = 6;
/// Divisor in the place of one that is smaller, as bitsandbytes has it.
inline constexpr double kLeastDivisor = 1e-38;

// The 16 numbers of bitsandbytes' types of 4 bits, by code.

/// The quantiles of a normal distribution that its largest value scales to 1.
inline constexpr std::array<float, 16> kNf4Numbers{-1.0F,
                                                   -0.6961928009986877F,
                                                   -0.5250730514526367F,
                                                   -0.39491748809814453F,
                                                   -0.28444138169288635F,
                                                   -0.18477343022823334F,
                                                   -0.09105003625154495F,
                                                   0.0F,
                                                   0.07958029955625534F,
                                                   0.16093020141124725F,
                                                   0.24611230194568634F,
                                                   0.33791524171829224F,
                                                   0.44070982933044434F,
                                                   0.5626170039176941F,
                                                   0.7229568362236023F,
                                                   1.0F};
/// A sign, two bits of an exponent and one of a mantissa, scaled to 1. The code 8 is 0 too, without a sign.
inline constexpr std::array<float, 16> kFp4Numbers{
    0.0F,  // of the codes 0 to 7
    0.0625F / 12,  8.0F / 12,  1.0F,  4.0F / 12,  0.5F,  2.0F / 12,  0.25F,
    0.0F,  // and 8 to 15
    -0.0625F / 12, -8.0F / 12, -1.0F, -4.0F / 12, -0.5F, -2.0F / 12, -0.25F};

/// E2M1, by code: a sign, two bits of an exponent and one of a mantissa.
inline constexpr std::array<float, 16> kFloat4Numbers{0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                                      -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

inline const std::array<float, 16>& numbers_of(NumberTable table) {
  return table == NumberTable::kNf4 ? kNf4Numbers : kFp4Numbers;
}

}  // namespace lancet
