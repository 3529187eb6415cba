// Access to one weight of a stored tensor that may hold several. Defined in weight_loader.cpp.
#pragma once

#include <optional>
#include <vector>

#include "lancet/models/weight_table.h"
#include "lancet/quant/packed_matrix.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// Returns the weight's numbers from the one tensor that is stored with StoredPlace::shape, in the weight's own shape.
/// The result is a view if possible.
Tensor stored_part(const Tensor& stored, const WeightSpec& spec);

/// Returns views of the weight's parts in the order of StoredPlace::tensors.
std::vector<Tensor> stored_parts(const WeightSpec& spec, const Tensor& weight);

/// Returns views of the weight's parts in the order of WeightSpec::packed.
std::vector<Tensor> packed_parts(const WeightSpec& spec, const Tensor& weight);

/// Writes a weight (or its part of one tensor), given in its own shape, to its place in a tensor of the stored shape.
void put_stored_part(const Tensor& stored, const WeightSpec& spec, const Tensor& weight);

/// Returns the weight's bytes in the file if they have the same order there as in the weight; nullopt if they must be
/// rearranged or unpacked.
std::optional<TensorView> stored_view(const Checkpoint& checkpoint, const WeightSpec& spec);

/// Reads a matrix that the checkpoint has quantised into its own memory on `device`. Throws: CheckpointError.
PackedMatrix read_packed(const Checkpoint& checkpoint, const PackedSpec& spec, at::Device device);

/// Reads a whole weight that the checkpoint has quantised, and unpacks it to `type` on `device`. Throws: as
/// read_stored().
Tensor read_unpacked(const Checkpoint& checkpoint, const WeightSpec& spec, at::Device device, at::ScalarType type);

/// Reads the weight to the host: in its stored type, or unpacked to `unpacked` if it is quantised. Do not write to the
/// result: it may be the file's memory. Throws: CheckpointError; NumericError when that type cannot hold the weight.
Tensor read_stored(const Checkpoint& checkpoint, const WeightSpec& spec, at::ScalarType unpacked);

}  // namespace lancet
