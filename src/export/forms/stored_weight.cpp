#include "lancet/export/stored_weight.h"

#include <array>
#include <stdexcept>

#include "lancet/models/stored_part.h"
#include "lancet/models/tensor_reader.h"
#include "lancet/models/weight_table.h"
#include "lancet/runtime/placement.h"

namespace lancet {

Tensor stored_weight(const ModelFiles& files, const CausalLM& model, WeightId id) {
  for (const WeightSpec& spec : resolve_weights(files.config, files.checkpoint)) {
    if (spec.id != id) continue;
    const at::ScalarType type = to_scalar_type(
        spec.packed.empty() ? files.checkpoint.info(spec.stored.tensors.front()).dtype : files.config.dtype);
    if (model.weight(id).scalar_type() == type) return model.weight(id);
    const std::optional<TensorView> stored = stored_view(files.checkpoint, spec);
    if (!stored) return read_stored(files.checkpoint, spec, type).contiguous().clone();
    const std::array read{TensorRead{*stored, Placement::host(), type}};
    return read_tensors(read, [](int64_t) {}).front();
  }
  throw std::logic_error("no such weight: " + weight_name(files.config, id));
}

}  // namespace lancet
