// Attention of ragged rows by our own GPU kernels: one for the forward pass, two for the backward pass.
#pragma once

#include "lancet/kernels/ragged_attention.h"

namespace lancet {

/// Largest dimension of a head that the kernels support.
inline constexpr int64_t kMostHeadOfKernels = 256;

/// The result of ragged_attention() as [M, H, C]; for tensors that a launcher supports, with heads of at most
/// kMostHeadOfKernels.
Tensor device_attention(const Tensor& query_MHC, const KeyValuePair& fresh_NKC, const KeyValuePair& pool_KSC,
                        const RaggedRows& rows, AttentionRule rule);

}  // namespace lancet
