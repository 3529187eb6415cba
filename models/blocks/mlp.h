// The parts of an MLP between its projections.
#pragma once

#include "lancet/models/model_config.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// activation(gate) * up; without a gate activation(up).
Tensor mlp_key(const ModelConfig& config, const Tensor& gate, const Tensor& up);

}  // namespace lancet
