// The index of a token in a vocabulary.
#pragma once

#include <cstdint>

namespace lancet {

using TokenId = int64_t;

}  // namespace lancet
