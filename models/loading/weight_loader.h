// A checkpoint's weights on their devices, in full precision or frozen.
#pragma once

#include "lancet/models/model_config.h"
#include "lancet/models/model_weights.h"

namespace lancet {

/// Loads weights for CausalLM::load(). Frozen matrices take, one after another, their stored form beside the packed
/// one.
ModelWeights load_weights(const Checkpoint& checkpoint, const ModelConfig& config, const Placement& placement,
                          const FreezeRule& rule);

}  // namespace lancet
