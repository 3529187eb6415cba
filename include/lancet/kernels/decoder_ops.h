// The elementwise operations of a decoder layer. Each is one pass over memory and differentiable once. On the host they
// are lancet's own loops: torch only has chains of smaller operations there, which take as long as the matrix products
// (docs/benchmarks.md). On GPUs they are lancet's own kernels (own_kernels.h). On other devices they are torch's
// chains.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Computes x [..., D] * weight [D] / rms(x). The mean square is taken in at least f32 (Zhang & Sennrich, arXiv
/// 1910.07467).
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);

/// Computes rms_norm(), but rounds only once, after the product with the weight, whose type may be wider than x's.
Tensor rms_norm_precise(const Tensor& x, const Tensor& weight, double eps);

/// Returns f64 for f64 tensors and f32 for all others.
at::ScalarType precise_type(const Tensor& x);

struct NormedSum {
  Tensor sum;     ///< new residual stream
  Tensor normed;  ///< rms_norm of it
};
/// Computes x + added (both of one shape) and the norm of the sum: the step from attention to the MLP in a layer.
NormedSum add_rms_norm(const Tensor& x, const Tensor& added, const Tensor& weight, double eps);

/// Computes silu(gate) * up, the SwiGLU activation (Shazeer, arXiv 2002.05202). Both tensors have one shape.
Tensor silu_times(const Tensor& gate, const Tensor& up);

/// Computes silu_times() of one tensor [..., 2 F] with the gates before the ups, as one product with both matrices
/// gives them.
Tensor silu_times_halves(const Tensor& both);

/// Applies the rotary embedding (Su et al., arXiv 2104.09864) to pairs (i, i + C / 2), the layout of Llama checkpoints:
/// x [B, T, H, C] with cosines and sines [B, T, 1, C] in x's dtype. The tables are constants.
Tensor rotate_pairs(const Tensor& x_BTHC, const Tensor& cos_BT1C, const Tensor& sin_BT1C);

/// The tables of rotate_pairs(). If they are undefined, nothing is rotated.
struct RotaryTables {
  Tensor cos_BT1C;
  Tensor sin_BT1C;
};

/// Queries, keys and values as contiguous tensors.
struct SplitHeads {
  Tensor query_BTHC;
  Tensor key_BTKC;
  Tensor value_BTKC;
};

struct HeadCounts {
  int64_t heads;
  int64_t kv_heads;
  int64_t dim;
};

/// Splits the result [B, T, (H + 2 K) C] of one product with the query, key and value matrices, and rotates queries and
/// keys. The backward pass joins the three gradients again, so that they need only one product.
SplitHeads split_heads(const Tensor& joined, HeadCounts counts, const RotaryTables& tables);

}  // namespace lancet
