// Attention within the documents of a packed row. A block-diagonal mask over the row would cost its length squared;
// here each run of documents of equal length is a batch of its own.
#pragma once

#include <span>

#include "lancet/kernels/attention.h"
#include "lancet/models/sequence_info.h"

namespace lancet {

/// As in SequenceInfo, on the layer's device.
struct PackedDocuments {
  std::span<const DocumentRun> runs;
  Tensor places_P, first_T;
};

/// query [1, T, H, C], keys and values [1, T, K, C] of a packed row -> [1, T, H * C].
Tensor packed_attention(const Tensor& query_1THC, const KeyValuePair& fresh_1TKC, const PackedDocuments& packed);

}  // namespace lancet
