// Numbers as they are stored, and the wider type that arithmetic on them is done in: for the host's loops and for
// decoder_kernels.cu. Plain C++ without includes, since NVRTC reads it too; who includes it on the host declares C's
// mathematics before (<cmath>).
#pragma once

#ifdef __CUDACC_RTC__
#define LANCET_BODY __device__ __forceinline__
#define LANCET_UNROLL _Pragma("unroll")
#else
#define LANCET_BODY inline
#define LANCET_UNROLL
#endif

namespace lancet {

struct Bf16 {
  unsigned short bits;
};
struct F16 {
  unsigned short bits;
};

LANCET_BODY float widened_bf16(unsigned short bits) {
  return __builtin_bit_cast(float, static_cast<unsigned>(bits) << 16);
}

/// Rounds to the nearest, ties to even; the high half of a NaN stays one because its quiet bit is set.
LANCET_BODY unsigned short narrowed_bf16(float x) {
  const unsigned bits = __builtin_bit_cast(unsigned, x);
  const unsigned rounded = x == x ? bits + 0x7FFFU + ((bits >> 16) & 1U) : bits | 0x400000U;
  return static_cast<unsigned short>(rounded >> 16);
}

LANCET_BODY float widened_f16(unsigned short half) {
  const unsigned sign = (half & 0x8000U) << 16, magnitude = (half & 0x7FFFU) << 13;
  if (magnitude >= 0x0F800000U) return __builtin_bit_cast(float, sign | 0x70000000U | magnitude);  // infinity, NaN
  // with the exponent's bias of f16; a product mends it, also of what has no leading one
  const float scaled = __builtin_bit_cast(float, magnitude) * 0x1p112F;
  return __builtin_bit_cast(float, sign | __builtin_bit_cast(unsigned, scaled));
}

/// Rounds to the nearest, ties to even.
LANCET_BODY unsigned short narrowed_f16(float x) {
  const unsigned bits = __builtin_bit_cast(unsigned, x), sign = (bits >> 16) & 0x8000U, magnitude = bits & 0x7FFFFFFFU;
  unsigned half = 0;
  if (magnitude > 0x7F800000U) {
    half = 0x7E00U;
  } else if (magnitude >= 0x477FF000U) {  // from 65520 on: infinity
    half = 0x7C00U;
  } else if (magnitude < 0x38800000U) {  // below 2^-14: the sum with 1/2 rounds at f16's last place
    half = __builtin_bit_cast(unsigned, __builtin_bit_cast(float, magnitude) + 0.5F) - 0x3F000000U;
  } else {
    half = (magnitude - 0x38000000U + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
  }
  return static_cast<unsigned short>(sign | half);
}

template <typename T>
struct Number;
template <>
struct Number<float> {
  using Wide = float;
  static LANCET_BODY float widen(float x) { return x; }
  static LANCET_BODY float narrow(float x) { return x; }
};
template <>
struct Number<double> {
  using Wide = double;
  static LANCET_BODY double widen(double x) { return x; }
  static LANCET_BODY double narrow(double x) { return x; }
};
template <>
struct Number<Bf16> {
  using Wide = float;
  static LANCET_BODY float widen(Bf16 x) { return widened_bf16(x.bits); }
  static LANCET_BODY Bf16 narrow(float x) { return {narrowed_bf16(x)}; }
};
template <>
struct Number<F16> {
  using Wide = float;
  static LANCET_BODY float widen(F16 x) { return widened_f16(x.bits); }
  static LANCET_BODY F16 narrow(float x) { return {narrowed_f16(x)}; }
};

template <typename T>
using Wide = typename Number<T>::Wide;

template <typename T>
LANCET_BODY Wide<T> wide(T x) {
  return Number<T>::widen(x);
}

template <typename T>
LANCET_BODY T narrow(Wide<T> x) {
  return Number<T>::narrow(x);
}

LANCET_BODY float exponential(float x) { return expf(x); }
LANCET_BODY double exponential(double x) { return exp(x); }
LANCET_BODY float logarithm(float x) { return logf(x); }
LANCET_BODY double logarithm(double x) { return log(x); }
LANCET_BODY float square_root(float x) { return sqrtf(x); }
LANCET_BODY double square_root(double x) { return sqrt(x); }

}  // namespace lancet
