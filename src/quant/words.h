// Numbers of few bits among bytes and words of 32 bits, low bits first.
#pragma once

#include <span>

#include "lancet/quant_scheme/quant_scheme.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// The bytes of a contiguous tensor, [..., bytes of the last dimension].
Tensor as_bytes(const Tensor& tensor);

/// Whole numbers of `group` bytes each, low bytes first, in rows of bytes [n, bytes]: [n, bytes / group] i32.
Tensor joined_bytes(const Tensor& bytes, int64_t group);

/// `count` numbers of `bits` bits (2, 3, 4 or 8) in each row of `words` [n, words] i32: [n, count] u8.
Tensor unpack_words(const Tensor& words, int64_t bits, int64_t count);

/// Words packed along the inputs, [inputs * bits / 32, outputs] i32, as rows of bytes [outputs, inputs * bits / 8].
Tensor rows_of_words(const Tensor& words);

/// What GPTQ's first format takes from a word of zero points of 2, 4 or 8 bits.
int64_t ones_of_words(int64_t bits);
/// GPTQ's zero points [groups, outputs * bits / 32] i32 as numbers [groups, outputs] u8. The first format has them less
/// one: words that are less one in each number, where a number of 0 takes from its neighbour, and so is one added.
/// Numbers of 3 bits do not end with words: each for itself.
Tensor unpack_gptq_zeros(const Tensor& words, int64_t bits, int64_t outputs, ZeroPoints zeros);

/// AWQ's words along the outputs, [n, outputs / 8] i32, as numbers [n, outputs] u8.
Tensor unpack_awq(const Tensor& words);
/// The same with n inputs, as rows of two numbers a byte [outputs, inputs / 2].
Tensor rows_of_awq(const Tensor& words);

enum class PairOrder { kLowFirst, kHighFirst };

/// [256] on `device`: of each byte its two numbers of `type`, f32, f16 or bf16, as the bits of one integer. `values`:
/// of the 16 codes.
Tensor pair_table(std::span<const float> values, PairOrder order, at::ScalarType type, at::Device device);

}  // namespace lancet
