// Attention of ragged rows as kernels of our own: one forward, two back.
#pragma once

#include "lancet/kernels/ragged_attention.h"

namespace lancet {

/// Largest head that the kernels take.
inline constexpr int64_t kMostHeadOfKernels = 256;

/// ragged_attention() as [M, H, C], where a launcher serves the tensors and heads are not too large.
Tensor device_attention(const Tensor& query_MHC, const KeyValuePair& fresh_NKC, const KeyValuePair& pool_KSC,
                        const RaggedRows& rows, AttentionRule rule);

}  // namespace lancet
