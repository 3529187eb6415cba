// The random numbers of causal tracing: a counter-based generator that can be written in ten lines in any language. A
// sample depends only on (seed, fact, sample), not on batches, ranks or devices. mix is SplitMix64 (Steele, Lea, Flood
// 2014): the output function of the state x + 0x9e3779b97f4a7c15.
//   key = mix(mix(mix(seed) + fact) + sample)
//   u(i) = ((mix(key + i) >> 11) + 1) / 2^53, in (0, 1]
//   normal(j) = sqrt(-2 ln u(2 j)) cos(2 pi u(2 j + 1))
#pragma once

#include <cstdint>

#include "lancet/runtime/tensor.h"

namespace lancet {

struct NoiseKey {
  uint64_t seed = 0;
  uint64_t fact = 0;
  uint64_t sample = 0;
};

/// Returns standard normal numbers [tokens, dims] f64 on the host: number j = token * dims + dim.
Tensor trace_noise(NoiseKey key, int64_t tokens, int64_t dims);

}  // namespace lancet
