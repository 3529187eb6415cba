// Token sequences in one packed row, and where each of their tokens stands in it.
#pragma once

#include <span>
#include <vector>

#include "lancet/models/sequence_info.h"

namespace lancet {

struct PackedDocumentBatch {
  TokenBatch batch;
  std::vector<std::vector<int64_t>> tokens;  ///< tokens of the row that each document is, first to last

  /// Packs documents as make_packed_batch() does.
  explicit PackedDocumentBatch(const std::vector<std::span<const TokenId>>& documents);

  int64_t size() const { return batch.ids_BT.size(1); }
};

}  // namespace lancet
