// Latent attention's keys and values of heads where the files have each in a tensor of its own (Layout::kLatentParts).
#pragma once

#include "lancet/models/weight_table.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// Reads both, unpacked to `unpacked` if they are quantised, and returns the matrix that the model's class has: of each
/// head the keys, then the values. Throws: CheckpointError.
Tensor read_latents(const Checkpoint& checkpoint, const WeightSpec& spec, at::ScalarType unpacked);

}  // namespace lancet
