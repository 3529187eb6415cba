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

/// Describes how attention scores become attention weights.
struct AttentionRule {
  double scale;         ///< scores are multiplied by this before they are capped
  double cap = 0;       ///< scores become cap * tanh(score / cap) (Gemma 2, arXiv 2408.00118); 0: no cap
  Tensor sinks_H = {};  ///< one extra score per query head, which takes weight and has no value; undefined: none

  /// Whether scores become weights in another way than by a plain softmax, which is the only way that fused kernels
  /// know.
  bool is_bent() const { return cap > 0 || sinks_H.defined(); }
};

/// Returns the rule that divides scores by the square root of the head's size (arXiv 1706.03762).
inline AttentionRule usual_rule(int64_t head_dim) { return {1.0 / std::sqrt(static_cast<double>(head_dim))}; }

/// Computes attention of queries [B, Q, H, C] to keys and values -> [B, Q, H * C]. `fresh`: keys and values [B, T, K,
/// C] of the current tokens; K divides H; T may be 0 when there is a prefix. `prefix`: keys and values of earlier
/// positions [B, K, P, C]; they are constants, may be a view of a larger memory, or undefined. `mask_B1QS`: bool [B, 1,
/// Q, P + T], true: the query may attend; every query must have at least one such position. An undefined mask means
/// causal attention with Q = T and no prefix. Differentiable once.
Tensor grouped_attention(const Tensor& query_BQHC, const KeyValuePair& fresh_BTKC, const KeyValuePair& prefix_BKPC,
                         const Tensor& mask_B1QS, AttentionRule rule);

/// Whether grouped_attention() with a mask runs lancet's own loops for queries of this type, device and number.
bool has_attention_loops(const Tensor& query_BQHC);

// Causal attention of documents of any lengths in one launch. All query heads of a group read the group's keys and
// values without a copy (grouped-query attention). The kernel is torch's FlashAttention-2 (arXiv 2307.08691).

/// The bounds of documents that are stored one after another.
struct DocumentBounds {
  Tensor bounds;            ///< int32 [N + 1]: document i is places bounds[i]..bounds[i + 1] - 1
  int64_t most_tokens = 0;  ///< length of the longest document
};

/// Returns the bounds of documents with these numbers of tokens, in order, on `device`. Throws: std::logic_error when
/// there are more places than an int32 can count.
DocumentBounds document_bounds(std::span<const int64_t> lengths, at::Device device);

/// Describes one attention over documents: types, sizes, and the device's capability.
struct VarlenCase {
  at::ScalarType type;
  int64_t capability = 0;  ///< compute_capability() of the device; 0 on all but GPUs
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t most_tokens = 0;  ///< length of the longest document
  bool every_query = true;  ///< the queries of each document are all its tokens, in order
  bool needs_gradients = false;
  bool sees_all_before = true;  ///< no window cuts a document
  bool bends_scores = false;    ///< AttentionRule::is_bent()
};

/// Whether varlen_attention() can compute this case. No other place decides this.
bool fits_varlen_kernel(const VarlenCase& attention);

/// Describes attention of queries [..., H, C] to keys and values [..., K, C] of these documents, where every token is a
/// query.
VarlenCase varlen_case(const Tensor& query, const Tensor& key, const Tensor& value, const DocumentBounds& documents);

/// Computes attention of queries [P, H, C] to keys and values [P, K, C] of all the documents' places -> [P, H, C]. Each
/// place attends to the places of its own document up to itself; scores are multiplied by `scale`. Query head h reads
/// key head h / (H / K).
using VarlenKernel = Tensor (*)(const Tensor& query_PHC, const Tensor& key_PKC, const Tensor& value_PKC,
                                const DocumentBounds& documents, double scale);

/// Computes this attention on GPUs, for cases that fits_varlen_kernel() accepts. Not differentiable.
Tensor varlen_attention(const Tensor& query_PHC, const Tensor& key_PKC, const Tensor& value_PKC,
                        const DocumentBounds& documents, double scale);

}  // namespace lancet
