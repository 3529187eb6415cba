// Conversions between types of numbers on plain memory, in the calling thread alone.
#pragma once

#include <cstdint>
#include <span>

namespace lancet {

/// f32 from the bits of bf16, exactly. As many numbers in both.
void widen(std::span<const uint16_t> bf16, std::span<float> f32);

}  // namespace lancet
