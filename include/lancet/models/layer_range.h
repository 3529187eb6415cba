// A range of consecutive layers of a model.
#pragma once

#include <cstdint>

namespace lancet {

/// Layers begin..end-1.
struct LayerRange {
  int64_t begin = 0;
  int64_t end = 0;
};

}  // namespace lancet
