// What loops over plain memory share: clones for several instruction sets, and arithmetic wider than the stored type.
#pragma once

#include <c10/util/BFloat16.h>

#include <bit>
#include <cstdint>
#include <type_traits>

// The compiler vectorises a function so marked once per instruction set; the best one is chosen when the program
// starts.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define LANCET_CLONES __attribute__((target_clones("avx512f", "avx2", "default"), flatten))
// glibc's vector exponential, within 4 ulp.
extern "C" __attribute__((simd("notinbranch"))) float expf(float) noexcept;
#else
#define LANCET_CLONES
#endif

namespace lancet {

struct RowRange {
  int64_t begin;
  int64_t end;
};

/// The type that arithmetic on T is done in.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

inline float wide(float x) { return x; }
inline double wide(double x) { return x; }
inline float wide(c10::BFloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.x) << 16); }

template <typename T>
inline T narrow(Wide<T> x) {
  if constexpr (std::is_same_v<T, c10::BFloat16>) {
    // To the nearest, ties to even; the high half of a NaN stays one because its quiet bit is set.
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    const uint32_t rounded = x == x ? bits + 0x7FFFU + ((bits >> 16) & 1U) : bits | 0x400000U;
    return c10::BFloat16(static_cast<uint16_t>(rounded >> 16), c10::BFloat16::from_bits());
  } else {
    return x;
  }
}

}  // namespace lancet
