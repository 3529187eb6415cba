// Attention within the documents of a packed row. A block-diagonal mask over the row would cost the square of its
// length. Here each run of documents of equal length is a separate batch, or one kernel takes documents of all lengths.
#pragma once

#include <span>
#include <vector>

#include "lancet/kernels/attention.h"
#include "lancet/models/sequence_info.h"

namespace lancet {

/// The largest number of tokens for which a document's scores are stored on every device. For such documents, plain
/// batched products are faster than the fused kernel, whose cost for each document and head then exceeds the arithmetic
/// (measured on a CPU in f32: 2 to 4 times at 6 to 21 tokens, equal at 64).
inline constexpr int64_t kShortTokens = 64;

/// The queries of a layer that computes only some tokens of a packed row. Each belongs to the document in which its
/// token occurs first. All documents of a run get the same number of queries: a document with fewer gets additional
/// ones, whose results are not used.
struct PackedQueries {
  std::vector<int64_t> per_document;  ///< number of queries in each document of a run
  Tensor outputs_X;                   ///< run after run and document after document: index of the output
  Tensor places_X;                    ///< and its position in the document
  Tensor first_O;                     ///< index of each output among them; undefined: every token is a query
};

/// The documents of SequenceInfo, on the layer's device.
struct PackedDocuments {
  std::span<const DocumentRun> runs;
  int64_t window = 0;  ///< number of positions that a token sees, its own included; 0: all before it
  Tensor places_P, first_T;
  PackedQueries queries;
  DocumentBounds bounds;  ///< bounds of the places; undefined if no kernel needs them
};

/// Returns the documents of a packed sequence, on `device`.
PackedDocuments packed_documents(const SequenceInfo& sequence, at::Device device);

/// Returns the queries of the sequence's `outputs_BO`, on `device`.
PackedQueries packed_queries(const SequenceInfo& sequence, at::Device device);

/// Computes attention. query [1, Q, H, C]: of all tokens, or of those that `packed.queries` names; keys and values [1,
/// T, K, C] of a packed row. Returns [1, Q, H * C]. Uses the variable-length kernel if fits_varlen_kernel() allows it,
/// else goes run by run.
Tensor packed_attention(const Tensor& query_1THC, const KeyValuePair& fresh_1TKC, const PackedDocuments& packed,
                        AttentionRule rule);

/// Computes it for all tokens with `kernel`, on any device. `packed` must have bounds.
Tensor packed_attention_by(VarlenKernel kernel, const Tensor& query_1THC, const KeyValuePair& fresh_1TKC,
                           const PackedDocuments& packed, double scale);

}  // namespace lancet
