// Attention within the documents of a packed row. A block-diagonal mask over the row would cost its length squared;
// here each run of documents of equal length is a batch of its own.
#pragma once

#include <functional>
#include <span>

#include "lancet/models/sequence_info.h"

namespace lancet {

/// Causal attention of rows: query [B, H, T, C], key and value [B, K, T, C] -> [B, H, T, C].
using CausalAttention = std::function<Tensor(const Tensor& query, const Tensor& key, const Tensor& value)>;

/// As in SequenceInfo, on the layer's device.
struct PackedDocuments {
  std::span<const DocumentRun> runs;
  Tensor places_P, first_T;
};

/// query [1, H, T, C], key and value [1, K, T, C] of a packed row -> [1, H, T, C]. `causal` runs the documents that are
/// long enough for a fused kernel to be worth its call.
Tensor packed_attention(const Tensor& query_1HTC, const Tensor& key_1KTC, const Tensor& value_1KTC,
                        const PackedDocuments& packed, const CausalAttention& causal);

}  // namespace lancet
