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

}  // namespace lancet
