// Orders that are drawn, the same on every machine.
#pragma once

#include <cstdint>
#include <vector>

namespace lancet {

/// Places of `n` requests in the order of a pass (from 0): by mix(mix(mix(seed) + pass) + place), mix being SplitMix64
/// (Steele, Lea, Flood 2014).
std::vector<int64_t> drawn_order(int64_t n, int64_t pass, uint64_t seed);

}  // namespace lancet
