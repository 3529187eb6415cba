// SplitMix64 (Steele, Lea, Flood 2014): random numbers that are equal on every machine and in every thread.
#pragma once

#include <cstdint>

namespace lancet {

/// Returns the output function at the state x + 0x9e3779b97f4a7c15.
constexpr uint64_t split_mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace lancet
