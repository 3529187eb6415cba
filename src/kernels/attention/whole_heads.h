// Keys and values of earlier tokens in the layout that loops and kernels read. Defined in attention.cpp.
#pragma once

#include "lancet/kernels/attention.h"

namespace lancet {

/// Returns keys and values [..., K, S, C] with equal strides, in which a head's positions are contiguous: the same
/// tensors if they already are so, else copies. Undefined tensors stay undefined.
KeyValuePair with_whole_heads(const KeyValuePair& pool);

}  // namespace lancet
