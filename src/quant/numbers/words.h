// Numbers of few bits among bytes and words of 32 bits, low bits first.
#pragma once

#include <span>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// The bytes of a contiguous tensor, [..., bytes of the last dimension].
Tensor as_bytes(const Tensor& tensor);

/// Whole numbers of `group` bytes each, low bytes first, in rows of bytes [n, bytes]: [n, bytes / group] i32.
Tensor joined_bytes(const Tensor& bytes, int64_t group);

/// `count` numbers of `bits` bits (2, 3, 4 or 8) in each row of `words` [n, words] i32: [n, count] u8.
Tensor unpack_words(const Tensor& words, int64_t bits, int64_t count);

/// The inverse of numbers [n, count] u8, the last word of a row filled up with 0: [n, words] i32.
Tensor pack_words(const Tensor& numbers, int64_t bits);

/// Joins numbers of 4 bits, u8: two a byte.
Tensor pairs_of(const Tensor& low, const Tensor& high);

/// The bit in which a byte without a sign, which is 128 more, differs from the one with a sign.
inline constexpr int64_t kSignOfByte = 0x80;

enum class PairOrder { kLowFirst, kHighFirst };

/// [256] on `device`: of each byte its two numbers of `type`, f32, f16 or bf16, as the bits of one integer. `values`:
/// of the 16 codes.
Tensor pair_table(std::span<const float> values, PairOrder order, at::ScalarType type, at::Device device);

}  // namespace lancet
