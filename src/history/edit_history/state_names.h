// What the tensors of a method's state are, by their names: each file is held to it when it is read.
#pragma once

#include "lancet/deltas/stream_state.h"
#include "lancet/models/model_config.h"

namespace lancet {

/// Throws: CheckpointError "NAME: expected ..., got ..." for a tensor of another shape than methods give it. Names that
/// no method has are not looked at: nobody reads them.
void check_state(const StateStep& step, const ModelConfig& config);

}  // namespace lancet
