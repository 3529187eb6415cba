// What loops over plain memory share: clones for several instruction sets, and arithmetic wider than the stored type.
#pragma once

#include <c10/util/BFloat16.h>

#include <cmath>
#include <cstdint>

// The compiler vectorises a function so marked once per instruction set; the best one is chosen when the program
// starts.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define LANCET_CLONES __attribute__((target_clones("avx512f", "avx2", "default"), flatten))
// glibc's vector exponential, within 4 ulp.
extern "C" __attribute__((simd("notinbranch"))) float expf(float) noexcept;
#else
#define LANCET_CLONES
#endif

#include "device/elementwise.h"

namespace lancet {

struct RowRange {
  int64_t begin;
  int64_t end;
};

template <>
struct Number<c10::BFloat16> {
  using Wide = float;
  static LANCET_BODY float widen(c10::BFloat16 x) { return widened_bf16(x.x); }
  static LANCET_BODY c10::BFloat16 narrow(float x) { return {narrowed_bf16(x), c10::BFloat16::from_bits()}; }
};

}  // namespace lancet
