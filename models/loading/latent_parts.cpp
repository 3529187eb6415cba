#include "latent_parts.h"

#include <torch/types.h>

#include "lancet/models/stored_part.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/devices.h"

namespace lancet {

Tensor read_latents(const Checkpoint& checkpoint, const WeightSpec& spec, at::ScalarType unpacked) {
  const auto read = [&](size_t part) {
    if (spec.packed.empty()) return to_tensor(checkpoint.view(spec.stored.tensors[part]));
    return read_packed(checkpoint, spec.packed[part], Placement::host()).unpack(unpacked);
  };
  const int64_t heads = spec.stored.groups, rank = spec.shape.back();
  // each head's keys lie turned in the file
  const Tensor keys = read(0).view({heads, rank, -1}).transpose(1, 2), values = read(1).view({heads, -1, rank});
  return torch::cat({keys, values}, 1).flatten(0, 1);
}

}  // namespace lancet
