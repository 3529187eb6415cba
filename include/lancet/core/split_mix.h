// SplitMix64 (Steele, Lea, Flood 2014): numbers that are drawn the same on every machine and of every thread.
#pragma once

#include <cstdint>

namespace lancet {

/// The output function of the state x + 0x9e3779b97f4a7c15.
constexpr uint64_t split_mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace lancet
