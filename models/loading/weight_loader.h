// A checkpoint's weights on their devices, in full precision or quantised.
#pragma once

#include "lancet/models/model_config.h"
#include "lancet/models/model_weights.h"

namespace lancet {

/// Loads weights for CausalLM::load(). Quantised matrices are loaded one after another; each needs the memory of its
/// stored form in addition to the packed one.
ModelWeights load_weights(const Checkpoint& checkpoint, const ModelConfig& config, const Placement& placement,
                          const QuantiseRule& rule);

}  // namespace lancet
