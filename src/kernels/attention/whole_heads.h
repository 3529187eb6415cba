// Keys and values of earlier tokens as loops and kernels read them. Defined in attention.cpp.
#pragma once

#include "lancet/kernels/attention.h"

namespace lancet {

/// Keys and values [..., K, S, C] with the same strides, a head's positions one after the other: where they lie, or
/// copies. Undefined ones stay so.
KeyValuePair with_whole_heads(const KeyValuePair& pool);

}  // namespace lancet
