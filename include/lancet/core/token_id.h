// A token's number in a vocabulary.
#pragma once

#include <cstdint>

namespace lancet {

using TokenId = int64_t;

}  // namespace lancet
