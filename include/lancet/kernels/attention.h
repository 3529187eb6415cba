// Attention of query heads that share key/value heads (grouped-query attention, arXiv 2305.13245).
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "lancet/runtime/tensor.h"

namespace lancet {

struct KeyValuePair {
  Tensor key;
  Tensor value;
};

/// How scores become weights.
struct AttentionRule {
  double scale;         ///< factor of scores, before they are capped
  double cap = 0;       ///< scores become cap * tanh(score / cap) (Gemma 2, arXiv 2408.00118); 0: they stay
  Tensor sinks_H = {};  ///< a score more for each query head, which takes weight and has no value; undefined: none

  /// Whether scores become weights otherwise than by softmax alone, which is all that fused kernels know.
  bool is_bent() const { return cap > 0 || sinks_H.defined(); }
};

/// Scores divided by the root of the head's size (arXiv 1706.03762).
inline AttentionRule usual_rule(int64_t head_dim) { return {1.0 / std::sqrt(static_cast<double>(head_dim))}; }

/// query [B, Q, H, C]; fresh keys and values [B, T, K, C], K dividing H; `prefix`: keys and values of earlier positions
/// [B, K, P, C], constants, perhaps a part of a longer memory, or undefined -> [B, Q, H * C]. T may be 0 beside a
/// prefix. `mask_B1QS`: bool [B, 1, Q, P + T], true: may attend; every query may attend to something. Undefined:
/// causal, Q = T and no prefix. Differentiable once.
Tensor grouped_attention(const Tensor& query_BQHC, const KeyValuePair& fresh_BTKC, const KeyValuePair& prefix_BKPC,
                         const Tensor& mask_B1QS, AttentionRule rule);

/// Whether grouped_attention with a mask runs loops of our own for queries [B, Q, H, C] of this kind and number.
bool has_attention_loops(const Tensor& query_BQHC);

// Causal attention of documents of any lengths in one launch, where keys and values are read by all query heads of
// their group (grouped-query attention) without being copied: FlashAttention-2 (arXiv 2307.08691), as torch has it.

/// Bounds of documents that follow one another.
struct DocumentBounds {
  Tensor bounds;            ///< int32 [N + 1]: document i is places bounds[i]..bounds[i + 1] - 1
  int64_t most_tokens = 0;  ///< length of the longest document
};

/// Returns the bounds of documents with these numbers of tokens, in order, on `device`.
/// Throws: std::logic_error for more places than int32 can count.
DocumentBounds document_bounds(std::span<const int64_t> lengths, at::Device device);

/// What an attention over documents is computed of, and where.
struct VarlenCase {
  at::ScalarType type;
  int64_t capability = 0;  ///< compute_capability() of the device; 0 on all but GPUs
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t most_tokens = 0;  ///< length of the longest document
  bool every_query = true;  ///< each document's queries are all its tokens, in order
  bool needs_gradients = false;
  bool sees_all_before = true;  ///< no window cuts a document
  bool bends_scores = false;    ///< AttentionRule::is_bent()
};

/// Whether varlen_attention() is right for it. The one place that decides so.
bool fits_varlen_kernel(const VarlenCase& attention);

/// Describes attention of queries [..., H, C], keys and values [..., K, C] of these documents' tokens, all of which are
/// queries.
VarlenCase varlen_case(const Tensor& query, const Tensor& key, const Tensor& value, const DocumentBounds& documents);

/// query [P, H, C], keys and values [P, K, C] of the documents' places -> [P, H, C]: each place attends to its own
/// document up to itself, scores times `scale`. Query head h reads key head h / (H / K).
using VarlenKernel = Tensor (*)(const Tensor& query_PHC, const Tensor& key_PKC, const Tensor& value_PKC,
                                const DocumentBounds& documents, double scale);

/// Computes it on GPUs, for what fits_varlen_kernel(). Without gradients.
Tensor varlen_attention(const Tensor& query_PHC, const Tensor& key_PKC, const Tensor& value_PKC,
                        const DocumentBounds& documents, double scale);

}  // namespace lancet
