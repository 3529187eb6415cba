// Whole numbers of few bits into words of 32 bits; each the inverse of a function of words.h.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// `numbers` [n, count] u8 of `bits` bits (2, 3, 4 or 8), low bits first, the last word of a row filled up with 0:
/// [n, words] i32.
Tensor pack_words(const Tensor& numbers, int64_t bits);

/// GPTQ's words along the inputs of numbers [inputs, outputs]: [inputs * bits / 32, outputs] i32.
Tensor words_of_inputs(const Tensor& numbers, int64_t bits);

/// AWQ's words along the outputs of numbers [n, outputs]: [n, outputs / 8] i32.
Tensor pack_awq(const Tensor& numbers);

}  // namespace lancet
