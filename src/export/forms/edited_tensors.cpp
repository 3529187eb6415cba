#include "edited_tensors.h"

#include <torch/types.h>

#include "lancet/models/stored_part.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/placement.h"

namespace lancet {

void EditedTensors::add(const WeightSpec& spec, const WeightTransaction::Entry& entry) {
  const std::vector<Tensor> parts = stored_parts(spec, entry.master.to(Placement::host(), entry.base.scalar_type()));
  const std::vector<Tensor> before = stored_parts(spec, entry.base);
  for (size_t i = 0; i < parts.size(); ++i) {
    // An expert that no request reaches keeps its bytes, the signs of its zeros included; a quantised one does not:
    // programs load the experts of a layer in one format.
    if (spec.packed.empty() && parts.size() > 1 && parts[i].equal(before[i].to(Placement::host()))) continue;
    put_stored_part(place(spec, i, parts[i].scalar_type()), spec, parts[i]);
  }
}

void EditedTensors::add_as_it_is(const WeightSpec& spec) {
  const at::ScalarType type = to_scalar_type(files_.config.dtype);
  const std::vector<Tensor> parts = stored_parts(spec, read_stored(files_.checkpoint, spec, type));
  for (size_t i = 0; i < parts.size(); ++i) put_stored_part(place(spec, i, type), spec, parts[i]);
}

const Tensor& EditedTensors::place(const WeightSpec& spec, size_t part, at::ScalarType type) {
  Tensor& stored = tensors_[spec.stored.tensors[part]];
  if (stored.defined()) return stored;
  if (spec.is_whole() || spec.is_sliced())
    stored = torch::empty(spec.stored.shape, type);
  else if (spec.packed.empty())
    stored = to_tensor(files_.checkpoint.view(spec.stored.tensors[part])).clone();
  else
    stored = read_packed(files_.checkpoint, spec.packed[part], Placement::host()).unpack(type);
  return stored;
}

}  // namespace lancet
