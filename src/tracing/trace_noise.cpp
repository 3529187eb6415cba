#include "lancet/tracing/trace_noise.h"

#include <torch/types.h>

#include <cmath>

namespace lancet {
namespace {

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

double uniform(uint64_t key, uint64_t i) { return static_cast<double>((mix(key + i) >> 11) + 1) * 0x1p-53; }

}  // namespace

Tensor trace_noise(NoiseKey key, int64_t tokens, int64_t dims) {
  const uint64_t stream = mix(mix(mix(key.seed) + key.fact) + key.sample);
  Tensor noise = torch::empty({tokens, dims}, torch::kDouble);
  double* out = noise.mutable_data_ptr<double>();
  for (uint64_t j = 0; j < static_cast<uint64_t>(tokens * dims); ++j)
    out[j] = std::sqrt(-2 * std::log(uniform(stream, 2 * j))) * std::cos(2 * M_PI * uniform(stream, 2 * j + 1));
  return noise;
}

}  // namespace lancet
