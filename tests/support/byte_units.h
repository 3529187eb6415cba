// Bytes by their units.
#pragma once

#include <cstdint>

namespace lancet::testing {

inline constexpr int64_t kGB = 1'000'000'000, kGiB = int64_t{1} << 30;

}  // namespace lancet::testing
