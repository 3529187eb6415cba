// The arithmetic of norm, gated activation, rotary embedding and token losses, number by number: said once for the
// host's loops and for the kernels of decoder_kernels.cu. Plain C++ without includes, since NVRTC reads it too; who
// includes it on the host declares C's mathematics before (<cmath>). Each result is rounded to the stored type where
// torch's chains of operations round it.
#pragma once

#ifdef __CUDACC_RTC__
#define LANCET_BODY __device__ __forceinline__
#else
#define LANCET_BODY inline
#endif

namespace lancet {

// ---- Stored types, and the wider one that arithmetic on them is done in

struct Bf16 {
  unsigned short bits;
};
struct F16 {
  unsigned short bits;
};

LANCET_BODY float widened_bf16(unsigned short bits) {
  return __builtin_bit_cast(float, static_cast<unsigned>(bits) << 16);
}

/// To the nearest, ties to even; the high half of a NaN stays one because its quiet bit is set.
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

/// To the nearest, ties to even.
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

// ---- Norm by the root mean square

/// Of the residual stream, as a sum of two tensors has it.
template <typename T>
LANCET_BODY T sum_of(T a, T b) {
  return narrow<T>(wide(a) + wide(b));
}

template <typename T>
LANCET_BODY Wide<T> square_term(T x) {
  return wide(x) * wide(x);
}

/// 1 / rms of a row whose squares' sum is known.
template <typename W>
LANCET_BODY W inverse_rms_of(W squares, W width, W eps) {
  return 1 / square_root(squares / width + eps);
}

/// Rounded between the products, as checkpoints of bf16 were trained.
template <typename T>
LANCET_BODY T normed(T x, T weight, Wide<T> scale) {
  return narrow<T>(wide(weight) * wide(narrow<T>(wide(x) * scale)));
}

/// The sum of these over a row, times along_factor(), is `along`.
template <typename T>
LANCET_BODY Wide<T> along_term(T x, T weight, T grad_y) {
  return wide(grad_y) * wide(weight) * wide(x);
}

template <typename W>
LANCET_BODY W along_factor(W scale, W width) {
  return scale * scale / width;
}

/// With n = x / rms: d x = (d n - n mean(d n * n)) / rms.
template <typename T>
LANCET_BODY T norm_gradient(T x, T weight, T grad_y, Wide<T> scale, Wide<T> along) {
  return narrow<T>(scale * (wide(grad_y) * wide(weight) - along * wide(x)));
}

// ---- Gated activation

template <typename W>
LANCET_BODY W sigmoid(W x) {
  return 1 / (1 + exponential(-x));
}

/// By reference, so that `up` is read behind the exponential: the host's compiler may order products by that.
template <typename T>
LANCET_BODY T gated(const T& gate, const T& up) {
  const Wide<T> g = wide(gate);
  return narrow<T>(wide(narrow<T>(g * sigmoid(g))) * wide(up));
}

/// `s`: the gate's sigmoid.
template <typename T>
LANCET_BODY T gate_gradient(Wide<T> g, Wide<T> s, T up, Wide<T> grad_y) {
  return narrow<T>(grad_y * wide(up) * s * (1 + g * (1 - s)));
}

template <typename T>
LANCET_BODY T up_gradient(Wide<T> g, Wide<T> s, Wide<T> grad_y) {
  return narrow<T>(grad_y * g * s);
}

// ---- Rotary embedding: the pair (a, b) becomes (a cos - b sin, b cos + a sin), and the other way round going back

template <typename T>
LANCET_BODY T turned_down(Wide<T> a, Wide<T> b, Wide<T> cos, Wide<T> sin) {
  return narrow<T>(a * cos - b * sin);
}

template <typename T>
LANCET_BODY T turned_up(Wide<T> a, Wide<T> b, Wide<T> cos, Wide<T> sin) {
  return narrow<T>(a * cos + b * sin);
}

// ---- Log-softmax and the loss of one token

/// Of some of a row's logits: the greatest, and the sum of exp(logit - greatest).
template <typename W>
struct SoftmaxSum {
  W greatest;
  W sum;
};

template <typename W>
LANCET_BODY SoftmaxSum<W> joined(SoftmaxSum<W> a, SoftmaxSum<W> b) {
  const W greatest = a.greatest > b.greatest ? a.greatest : b.greatest;
  // an infinity less itself is no number
  const W of_a = a.greatest == greatest ? 1 : exponential(a.greatest - greatest);
  const W of_b = b.greatest == greatest ? 1 : exponential(b.greatest - greatest);
  return {greatest, a.sum * of_a + b.sum * of_b};
}

template <typename W>
LANCET_BODY W token_loss(W logit, W greatest, W log_sum) {
  return (greatest - logit) + log_sum;
}

/// `is_label`: 1 for the row's label, else 0.
template <typename T>
LANCET_BODY T logit_gradient(T logit, Wide<T> greatest, Wide<T> log_sum, Wide<T> is_label, Wide<T> grad_loss) {
  return narrow<T>(grad_loss * (exponential((wide(logit) - greatest) - log_sum) - is_label));
}

}  // namespace lancet
