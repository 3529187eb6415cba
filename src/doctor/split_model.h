#pragma once

#include <span>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Returns the logits [T, V] of a small model with random weights that has at least one layer on each of `devices`, in
/// f32, on the host. They are the same for all devices.
Tensor split_model_logits(std::span<const at::Device> devices);

}  // namespace lancet
