// One weight among those that a stored tensor holds. Defined in weight_loader.cpp.
#pragma once

#include <optional>
#include <vector>

#include "lancet/models/weight_table.h"
#include "lancet/quant/packed_matrix.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// The weight's numbers of the one tensor that is stored [StoredPlace::shape], in the weight's own shape: a view of it
/// where there can be one.
Tensor stored_part(const Tensor& stored, const WeightSpec& spec);

/// The weight's parts in the order of StoredPlace::tensors: views.
std::vector<Tensor> stored_parts(const WeightSpec& spec, const Tensor& weight);

/// The weight's parts in the order of WeightSpec::packed: views.
std::vector<Tensor> packed_parts(const WeightSpec& spec, const Tensor& weight);

/// Writes a weight, or its part of one tensor, in its own shape, to its place in a tensor of the stored shape.
void put_stored_part(const Tensor& stored, const WeightSpec& spec, const Tensor& weight);

/// The weight's bytes where they lie in the file as they lie in the weight; nullopt where they have to be rearranged or
/// unpacked.
std::optional<TensorView> stored_view(const Checkpoint& checkpoint, const WeightSpec& spec);

/// A matrix that the checkpoint has quantised, on `device`, in memory of its own. Throws: CheckpointError.
PackedMatrix read_packed(const Checkpoint& checkpoint, const PackedSpec& spec, at::Device device);

/// The whole of a weight that the checkpoint has quantised, unpacked to `type` on `device`. Throws: as read_stored().
Tensor read_unpacked(const Checkpoint& checkpoint, const WeightSpec& spec, at::Device device, at::ScalarType type);

/// The weight as the checkpoint stores it, on the host: in its stored type, or unpacked to `unpacked` where it is
/// quantised. Only to be read: it may be the file's memory. Throws: CheckpointError; NumericError when that type cannot
/// hold it.
Tensor read_stored(const Checkpoint& checkpoint, const WeightSpec& spec, at::ScalarType unpacked);

}  // namespace lancet
