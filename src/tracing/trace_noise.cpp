#include "lancet/tracing/trace_noise.h"

#include <torch/types.h>

#include <cmath>

#include "lancet/core/split_mix.h"

namespace lancet {
namespace {

double uniform(uint64_t key, uint64_t i) { return static_cast<double>((split_mix(key + i) >> 11) + 1) * 0x1p-53; }

}  // namespace

Tensor trace_noise(NoiseKey key, int64_t tokens, int64_t dims) {
  const uint64_t stream = split_mix(split_mix(split_mix(key.seed) + key.fact) + key.sample);
  Tensor noise = torch::empty({tokens, dims}, torch::kDouble);
  double* out = noise.mutable_data_ptr<double>();
  for (uint64_t j = 0; j < static_cast<uint64_t>(tokens * dims); ++j)
    out[j] = std::sqrt(-2 * std::log(uniform(stream, 2 * j))) * std::cos(2 * M_PI * uniform(stream, 2 * j + 1));
  return noise;
}

}  // namespace lancet
