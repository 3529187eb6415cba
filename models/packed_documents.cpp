#include "lancet/models/packed_documents.h"

namespace lancet {

PackedDocumentBatch::PackedDocumentBatch(const std::vector<std::span<const TokenId>>& documents)
    : batch(make_packed_batch(documents)) {
  const Tensor& places_P = batch.sequence.places_P;  // undefined: every token has a place of its own
  int64_t place = 0;
  for (const std::span<const TokenId> document : documents) {
    std::vector<int64_t>& own = tokens.emplace_back();
    for (size_t t = 0; t < document.size(); ++t, ++place)
      own.push_back(places_P.defined() ? places_P.const_data_ptr<int64_t>()[place] : place);
  }
}

}  // namespace lancet
