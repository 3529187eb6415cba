#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "lancet/core/strings.h"

namespace lancet {

/// Returns "1.5 GB". Some systems report a negative size: "0 B".
inline std::string size_text(int64_t bytes) { return bytes_text(static_cast<uint64_t>(std::max<int64_t>(0, bytes))); }

}  // namespace lancet
