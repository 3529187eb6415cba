#pragma once

#include <span>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Logits [T, V] of a small model of random weights with a layer or more on each of `devices`, in f32, on the host: the
/// same numbers wherever they lie.
Tensor split_model_logits(std::span<const at::Device> devices);

}  // namespace lancet
