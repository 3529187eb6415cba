// Shared parts of the loops over plain memory: clones for several instruction sets, and arithmetic wider than the
// stored type.
#pragma once

#include <c10/util/BFloat16.h>

#include <cmath>
#include <cstdint>

// The compiler vectorises a function with this mark once for each instruction set; the best one is chosen when the
// program starts.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define LANCET_CLONES __attribute__((target_clones("avx512f", "avx2", "default"), flatten))
// glibc's vector exponential, within 4 ulp.
extern "C" __attribute__((simd("notinbranch"))) float expf(float) noexcept;

// Defines a function that calls another one, which is inlined and compiled for several instruction sets, as above.
// Products and sums are fused where the processor supports it: twice as fast, but not bit for bit the same results as
// without.
#define LANCET_FUSED_CLONES(NAME, BODY, PARAMETERS, ARGUMENTS)                                                      \
  __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma"), flatten)) static void NAME##_avx512 PARAMETERS { \
    BODY ARGUMENTS;                                                                                                 \
  }                                                                                                                 \
  __attribute__((target("avx2,fma"), flatten)) static void NAME##_avx2 PARAMETERS { BODY ARGUMENTS; }               \
  __attribute__((flatten)) static void NAME##_plain PARAMETERS { BODY ARGUMENTS; }                                  \
  void NAME PARAMETERS {                                                                                            \
    static const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&       \
                                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");        \
    static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");                   \
    if (has_avx512) return NAME##_avx512 ARGUMENTS;                                                                 \
    if (has_avx2) return NAME##_avx2 ARGUMENTS;                                                                     \
    NAME##_plain ARGUMENTS;                                                                                         \
  }
#else
#define LANCET_CLONES
#define LANCET_FUSED_CLONES(NAME, BODY, PARAMETERS, ARGUMENTS) \
  void NAME PARAMETERS { BODY ARGUMENTS; }
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
