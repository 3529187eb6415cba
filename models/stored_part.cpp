#include "lancet/models/stored_part.h"

#include <torch/types.h>

#include "lancet/models/tensor_io.h"

namespace lancet {
namespace {

/// View [groups, outputs of each, ...].
Tensor part_by_group(const Tensor& stored, const WeightSpec& spec) {
  const Tensor outputs = spec.stored.layout == Layout::kColumns && stored.dim() == 2 ? stored.t() : stored;
  const int64_t groups = spec.stored.groups;
  return outputs.unflatten(0, {groups, -1}).narrow(1, spec.stored.begin, spec.shape.front() / groups);
}

}  // namespace

Tensor stored_part(const Tensor& stored, const WeightSpec& spec) {
  return part_by_group(stored, spec).flatten(0, 1);  // of one group: still a view
}

void put_stored_part(const Tensor& stored, const WeightSpec& spec, const Tensor& weight) {
  part_by_group(stored, spec).copy_(weight.unflatten(0, {spec.stored.groups, -1}));
}

std::optional<TensorView> stored_view(const Checkpoint& checkpoint, const WeightSpec& spec) {
  TensorView view = checkpoint.view(spec.stored.name);
  if (spec.is_whole() && (spec.stored.layout != Layout::kColumns || spec.shape.size() == 1)) return view;
  const bool is_rows = spec.stored.layout == Layout::kRows || (spec.shape.size() == 1 && spec.stored.groups == 1);
  if (!is_rows) return std::nullopt;
  const auto row_bytes = view.bytes.size() / static_cast<size_t>(spec.stored.shape.front());
  view.bytes = view.bytes.subspan(static_cast<size_t>(spec.stored.begin) * row_bytes,
                                  static_cast<size_t>(spec.shape.front()) * row_bytes);
  view.shape = spec.shape;
  return view;
}

Tensor read_stored(const Checkpoint& checkpoint, const WeightSpec& spec) {
  return stored_part(to_tensor(checkpoint.view(spec.stored.name)), spec);
}

}  // namespace lancet
