#include <stdexcept>

#include "host_loops.h"
#include "lancet/kernels/convert.h"

namespace lancet {
namespace {

LANCET_CLONES void widen_values(const uint16_t* bf16, float* f32, int64_t n) {
  for (int64_t i = 0; i < n; ++i) f32[i] = wide(c10::BFloat16(bf16[i], c10::BFloat16::from_bits()));
}

}  // namespace

void widen(std::span<const uint16_t> bf16, std::span<float> f32) {
  if (bf16.size() != f32.size()) throw std::logic_error("widen: as many numbers are expected in both");
  widen_values(bf16.data(), f32.data(), static_cast<int64_t>(bf16.size()));
}

}  // namespace lancet
