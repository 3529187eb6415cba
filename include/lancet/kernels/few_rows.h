// Products of a matrix with very few rows of activations on the host, as when text is generated one token at a time.
// Such a product takes as long as reading the matrix, so each row is widened or decoded into a processor's cache, used
// there, and never written to memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// The most rows of activations for which few_rows_product() is meant.
inline constexpr int64_t kFewRows = 4;

/// Returns whether few_rows_product() takes these activations: [..., I] in f32 or bf16 on the host, of at most kFewRows
/// rows in all, and at least one.
bool are_few_rows(const Tensor& x);

/// Writes the rows `begin` to `begin + count` of a matrix, one after the other, as f32. Several threads may call it.
using ReadRows = std::function<void(int64_t begin, int64_t count, float* rows)>;

/// Computes x W^T + bias: x [..., I] as are_few_rows() takes them, W [outputs, I] as `read` gives it, bias [outputs]
/// that may be undefined -> [..., outputs] in x's type. Sums are f32 and rounded once. Where `read` gives numbers of
/// x's type, the result is that of the product with the unpacked matrix but for the order of the sums.
Tensor few_rows_product(const Tensor& x, int64_t outputs, const ReadRows& read, const Tensor& bias);

/// Rounds each number to bf16, to nearest and ties to even, and keeps it as f32.
void round_to_bf16(std::span<float> numbers);

/// Computes x W^T + bias for a contiguous W [O, I] in bf16 on the host; bias [O] may be undefined.
Tensor few_rows_linear(const Tensor& x, const Tensor& weight_OI, const Tensor& bias_O);

}  // namespace lancet
