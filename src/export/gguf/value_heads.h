// The order of value heads that share a key head of a gated delta rule.
#pragma once

#include "lancet/models/recurrence_config.h"
#include "lancet/models/weight_kind.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// Returns the weight with its value heads in the order of GGUF files (`tiled`), or of the model's class. `mixer` says
/// in which order it has them. Weights without value heads are returned as they are.
Tensor with_value_heads(const Tensor& weight, WeightKind kind, const RecurrenceConfig& mixer, bool tiled);

}  // namespace lancet
