// Attention of query heads that share key/value heads (grouped-query attention, arXiv 2305.13245).
#pragma once

#include <cmath>
#include <cstdint>

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

}  // namespace lancet
