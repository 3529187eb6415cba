#include "value_heads.h"

#include <torch/types.h>

namespace lancet {

Tensor with_value_heads(const Tensor& weight, WeightKind kind, const RecurrenceConfig& mixer, bool tiled) {
  if (mixer.kind != MixerKind::kGatedDelta || mixer.tiled_values == tiled || mixer.key_heads == mixer.value_heads)
    return weight;
  const int64_t keys = mixer.key_heads, sharing = mixer.value_heads / keys;
  const std::vector<int64_t> now =
      mixer.tiled_values ? std::vector{sharing, keys, int64_t{-1}} : std::vector{keys, sharing, int64_t{-1}};
  const auto along = [&](const Tensor& part, int64_t axis) {
    return part.unflatten(axis, now).transpose(axis, axis + 1).flatten(axis, axis + 2).contiguous();
  };
  switch (kind) {
    case WeightKind::kMixerValue:
    case WeightKind::kMixerGate:
    case WeightKind::kMixerRate:
    case WeightKind::kMixerDecay:
    case WeightKind::kMixerDecayBias:
    case WeightKind::kMixerDecayScale:
      return along(weight, 0);
    case WeightKind::kMixerOut:
      return along(weight, 1);
    case WeightKind::kMixerTaps: {  // channels of queries and keys come first
      const std::vector<Tensor> parts =
          weight.split_with_sizes({2 * mixer.key_size() * mixer.taps, mixer.value_size() * mixer.taps}, 0);
      return torch::cat({parts[0], along(parts[1], 0)}, 0);
    }
    default:
      return weight;
  }
}

}  // namespace lancet
