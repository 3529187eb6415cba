#include "lancet/models/model_weights.h"

namespace lancet {

at::Device weight_device(const Placement& placement, WeightId id) {
  switch (role_of(id.kind).place) {
    case WeightPlace::kEmbedding:
      return placement.embed_device();
    case WeightPlace::kHead:
      return placement.head_device();
    case WeightPlace::kLayer:
      break;
  }
  return placement.device_of(id.layer);
}

bool lies_here(const Placement& placement, WeightId id) {
  return role_of(id.kind).place == WeightPlace::kLayer ? placement.is_here(id.layer) : placement.has_ends();
}

}  // namespace lancet
