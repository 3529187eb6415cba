// Conversions between number types in plain memory. They run in the calling thread only.
#pragma once

#include <cstdint>
#include <span>

namespace lancet {

/// Converts bf16 bits to f32, exactly. Both spans have the same length.
void widen(std::span<const uint16_t> bf16, std::span<float> f32);

}  // namespace lancet
