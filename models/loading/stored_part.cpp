#include "lancet/models/stored_part.h"

#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"
#include "lancet/models/tensor_reader.h"
#include "lancet/quant/tensor_slice.h"
#include "lancet/runtime/placement.h"

namespace lancet {
namespace {

/// Whether all experts' parts lie in one tensor, and in the weight beside each other.
bool joins_columns(const WeightSpec& spec) { return has_all_experts(spec.stored.layout) && spec.parts_axis() == 1; }

/// View [experts, out, in] of a tensor of all experts.
Tensor by_expert(const Tensor& stored, const WeightSpec& spec) {
  return spec.stored.layout == Layout::kByExpertColumns ? stored.transpose(1, 2) : stored;
}

/// Whether each expert's outputs lie apart in it, so that they can be seen together with no others' alone.
bool takes_turns(const WeightSpec& spec) {
  return spec.stored.layout == Layout::kByExpertColumns && spec.shape.size() > 1;
}

/// View [experts, outputs of one, in] where weights take turns.
Tensor part_in_turn(const Tensor& stored, const WeightSpec& spec) {
  const int64_t groups = spec.stored.groups / spec.experts;
  return by_expert(stored, spec).unflatten(1, {groups, -1}).select(2, spec.stored.begin);
}

/// View [groups, outputs of each, ...].
Tensor part_by_group(const Tensor& stored, const WeightSpec& spec) {
  // a vector may be stored without a dimension, or with two
  const Tensor outputs = spec.shape.size() == 1                    ? stored.flatten()
                         : spec.stored.layout == Layout::kColumns  ? stored.t()
                         : spec.stored.layout == Layout::kByExpert ? stored.flatten(0, 1)
                                                                   : stored;
  const int64_t groups = spec.stored.groups;
  const int64_t size = spec.stored.tensors.size() > 1 ? outputs.size(0) : spec.shape.front();
  return outputs.unflatten(0, {groups, -1}).narrow(1, spec.stored.begin, size / groups);
}

/// The bytes of the one matrix that a slice is of, of those that the tensor has.
TensorView view_of_matrix(TensorView stored, const PackedSpec& spec) {
  const TensorSlice& slice = spec.slice;
  if (slice.is_whole()) return stored;
  const size_t bytes = stored.bytes.size() / static_cast<size_t>(slice.matrices);
  stored.bytes = stored.bytes.subspan(static_cast<size_t>(slice.matrix) * bytes, bytes);
  stored.shape.erase(stored.shape.begin());
  return stored;
}

}  // namespace

Tensor stored_part(const Tensor& stored, const WeightSpec& spec) {
  if (joins_columns(spec)) return by_expert(stored, spec).transpose(0, 1).flatten(1);
  if (takes_turns(spec)) return part_in_turn(stored, spec).flatten(0, 1);
  return part_by_group(stored, spec).flatten(0, 1);  // of one group: still a view
}

void put_stored_part(const Tensor& stored, const WeightSpec& spec, const Tensor& weight) {
  if (joins_columns(spec))
    by_expert(stored, spec).transpose(0, 1).copy_(weight.unflatten(1, {stored.size(0), -1}));
  else if (takes_turns(spec))
    part_in_turn(stored, spec).copy_(weight.unflatten(0, {spec.experts, -1}));
  else
    part_by_group(stored, spec).copy_(weight.unflatten(0, {spec.stored.groups, -1}));
}

std::vector<Tensor> stored_parts(const WeightSpec& spec, const Tensor& weight) {
  return weight.chunk(static_cast<int64_t>(spec.stored.tensors.size()), spec.parts_axis());
}

std::vector<Tensor> packed_parts(const WeightSpec& spec, const Tensor& weight) {
  return weight.chunk(static_cast<int64_t>(spec.packed.size()), spec.parts_axis());
}

std::optional<TensorView> stored_view(const Checkpoint& checkpoint, const WeightSpec& spec) {
  if (spec.stored.tensors.size() > 1 || !spec.packed.empty() || joins_columns(spec)) return std::nullopt;
  TensorView view = checkpoint.view(spec.stored.tensors.front());
  if (spec.is_whole() && (spec.stored.layout != Layout::kColumns || spec.shape.size() == 1)) {
    view.shape = spec.shape;  // a vector may be stored without a dimension, or with two
    return view;
  }
  const bool is_rows = spec.stored.layout == Layout::kRows || (spec.shape.size() == 1 && spec.stored.groups == 1);
  if (!is_rows) return std::nullopt;
  const auto row_bytes = view.bytes.size() / static_cast<size_t>(spec.stored.shape.front());
  view.bytes = view.bytes.subspan(static_cast<size_t>(spec.stored.begin) * row_bytes,
                                  static_cast<size_t>(spec.shape.front()) * row_bytes);
  view.shape = spec.shape;
  return view;
}

PackedMatrix read_packed(const Checkpoint& checkpoint, const PackedSpec& spec, at::Device device) {
  std::vector<Tensor> parts(spec.parts.size());
  std::vector<TensorRead> reads;
  std::vector<size_t> read_parts;
  for (size_t i = 0; i < spec.parts.size(); ++i) {
    if (spec.parts[i].role == PartRole::kRecord) continue;
    const TensorView stored = view_of_matrix(checkpoint.view(spec.parts[i].tensor), spec);
    reads.push_back({stored, device, to_scalar_type(stored.dtype)});
    read_parts.push_back(i);
  }
  std::vector<Tensor> tensors = read_tensors(reads, [](int64_t) {});
  for (size_t i = 0; i < tensors.size(); ++i) parts[read_parts[i]] = slice_of_matrix(tensors[i], spec).contiguous();
  try {
    return PackedMatrix::assemble(spec, parts);
  } catch (const CheckpointError& error) {
    throw CheckpointError(cat(checkpoint.folder().string(), ": ", error.what()));
  }
}

Tensor read_unpacked(const Checkpoint& checkpoint, const WeightSpec& spec, at::Device device, at::ScalarType type) {
  std::vector<Tensor> matrices;
  for (const PackedSpec& matrix : spec.packed) matrices.push_back(read_packed(checkpoint, matrix, device).unpack(type));
  if (matrices.size() == 1 && spec.packed.front().slice.is_whole()) return stored_part(matrices.front(), spec);
  return torch::cat(matrices, spec.parts_axis());
}

Tensor read_stored(const Checkpoint& checkpoint, const WeightSpec& spec, at::ScalarType unpacked) {
  if (!spec.packed.empty()) return read_unpacked(checkpoint, spec, Placement::host(), unpacked);
  std::vector<Tensor> tensors;
  for (const std::string& name : spec.stored.tensors) tensors.push_back(to_tensor(checkpoint.view(name)));
  return tensors.size() == 1 ? stored_part(tensors.front(), spec) : torch::cat(tensors, spec.parts_axis());
}

}  // namespace lancet
