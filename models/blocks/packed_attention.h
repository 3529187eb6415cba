// Attention within the documents of a packed row. A block-diagonal mask over the row would cost its length squared;
// here each run of documents of equal length is a batch of its own, or one kernel takes documents of all lengths.
#pragma once

#include <span>
#include <vector>

#include "lancet/kernels/attention.h"
#include "lancet/models/sequence_info.h"

namespace lancet {

/// Most tokens of a document whose scores are held on every device: plain batched products beat the fused kernel there,
/// whose cost per document and head then outweighs the arithmetic (measured on a CPU in f32: 2 to 4 times at 6 to 21
/// tokens, equal at 64).
inline constexpr int64_t kShortTokens = 64;

/// The queries of a layer that computes some tokens of a packed row alone. Each belongs to the document where its token
/// stands first. Documents of a run get equally many: where one has fewer, others stand in, whose results nobody reads.
struct PackedQueries {
  std::vector<int64_t> per_document;  ///< queries in each document of a run
  Tensor outputs_X;                   ///< run after run and document after document: which of the outputs
  Tensor places_X;                    ///< and its place in the document
  Tensor first_O;                     ///< place of each output among them; undefined: every token is a query
};

/// The documents of SequenceInfo, on the layer's device.
struct PackedDocuments {
  std::span<const DocumentRun> runs;
  int64_t window = 0;  ///< places of which a token sees the last ones, its own included; 0: all before it
  Tensor places_P, first_T;
  PackedQueries queries;
  DocumentBounds bounds;  ///< bounds of the places; undefined where no kernel asks for them
};

/// Returns the documents of a packed sequence, on `device`.
PackedDocuments packed_documents(const SequenceInfo& sequence, at::Device device);

/// Returns the queries of the sequence's `outputs_BO`, on `device`.
PackedQueries packed_queries(const SequenceInfo& sequence, at::Device device);

/// query [1, Q, H, C] of all tokens, or of those that `packed.queries` names, keys and values [1, T, K, C] of a packed
/// row -> [1, Q, H * C]. By the variable-length kernel where fits_varlen_kernel() says so, else run by run.
Tensor packed_attention(const Tensor& query_1THC, const KeyValuePair& fresh_1TKC, const PackedDocuments& packed,
                        AttentionRule rule);

/// Computes it for all tokens by `kernel`, whatever the device. `packed` has bounds.
Tensor packed_attention_by(VarlenKernel kernel, const Tensor& query_1THC, const KeyValuePair& fresh_1TKC,
                           const PackedDocuments& packed, double scale);

}  // namespace lancet
