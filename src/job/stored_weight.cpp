#include "stored_weight.h"

#include <stdexcept>

#include "lancet/models/tensor_io.h"
#include "lancet/models/weight_table.h"

namespace lancet {

Tensor stored_weight(const ModelFiles& files, WeightId id) {
  for (const WeightSpec& spec : resolve_weights(files.config, files.checkpoint))
    if (spec.id == id) return to_tensor(files.checkpoint.view(spec.stored_name));
  throw std::logic_error("no such weight: " + weight_name(files.config, id));
}

}  // namespace lancet
