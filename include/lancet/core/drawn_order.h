// Random orders that are the same on every machine.
#pragma once

#include <cstdint>
#include <vector>

namespace lancet {

/// Returns the places of `n` requests in a random order for one pass (passes count from 0). The places are sorted by
/// mix(mix(mix(seed) + pass) + place), where mix is SplitMix64 (Steele, Lea, Flood 2014).
std::vector<int64_t> drawn_order(int64_t n, int64_t pass, uint64_t seed);

}  // namespace lancet
