// The arithmetic of norm, gated activation, rotary embedding and token losses, number by number: said once for the
// host's loops and for the kernels of decoder_kernels.cu. Each result is rounded to the stored type where torch's
// chains of operations round it.
#pragma once

#include "numbers.h"

namespace lancet {

// ---- Norm by the root mean square

/// Adds in the residual stream, as a sum of two tensors has it.
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

/// Computes, with n = x / rms: d x = (d n - n mean(d n * n)) / rms.
template <typename T>
LANCET_BODY T norm_gradient(T x, T weight, T grad_y, Wide<T> scale, Wide<T> along) {
  return narrow<T>(scale * (wide(grad_y) * wide(weight) - along * wide(x)));
}

// ---- Gated activation

template <typename W>
LANCET_BODY W sigmoid(W x) {
  return 1 / (1 + exponential(-x));
}

/// Takes both by reference, so that `up` is read after the exponential: the host's compiler may order products by that.
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

/// Softmax's parts over some of a row's logits: the greatest, and the sum of exp(logit - greatest).
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

// ---- Attention

/// cap * tanh(score / cap).
template <typename W>
LANCET_BODY W capped_score(W score, W cap) {
  return cap - 2 * cap / (exponential(2 / cap * score) + 1);
}

/// Slope of the cap, by what it made of the score.
template <typename W>
LANCET_BODY W cap_slope(W capped, W cap) {
  return 1 - (capped / cap) * (capped / cap);
}

/// Weight of a score. `inverse`: 1 / the softmax's sum.
template <typename W>
LANCET_BODY W attention_weight(W score, W greatest, W inverse) {
  return exponential(score - greatest) * inverse;
}

/// Gradient of the product of a query with a key whose weight and whose weight's gradient these are. `mean`: that of
/// the weights' gradients, by weight.
template <typename W>
LANCET_BODY W product_gradient(W weight, W grad_weight, W mean, W scale) {
  return scale * weight * (grad_weight - mean);
}

}  // namespace lancet
