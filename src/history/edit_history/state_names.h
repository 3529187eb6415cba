// The meaning of a state's tensors, by their names. Each file is checked against it when it is read.
#pragma once

#include "lancet/deltas/stream_state.h"
#include "lancet/models/model_config.h"

namespace lancet {

/// Throws: CheckpointError "NAME: expected ..., got ..." if a tensor has another shape than the methods give it.
/// Tensors with unknown names are ignored, because nothing reads them.
void check_state(const StateStep& step, const ModelConfig& config);

}  // namespace lancet
