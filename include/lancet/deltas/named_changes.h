// Changes of weights as the tensors of a file.
#pragma once

#include <vector>

#include "lancet/deltas/stream_state.h"
#include "lancet/models/tensor_io.h"

namespace lancet {

/// `NAME/0/left`, `NAME/0/right` or `NAME/0/full`, `NAME/1/...` for each weight NAME, each [d_out, r], [r, d_in] or
/// [d_out, d_in] in its own type.
NamedTensors to_named(const std::vector<WeightChanges>& changes, const ModelConfig& config);

/// The inverse of to_named. Throws: CheckpointError for what it cannot have made.
std::vector<WeightChanges> to_changes(const NamedTensors& named, const ModelConfig& config);

}  // namespace lancet
