// The elementwise operations of a decoder layer, each as one pass over memory and differentiable once.
// On the host they are loops of our own, since torch has only chains of smaller operations there, which take as long as
// the matrix products (docs/benchmarks.md); on GPUs kernels of our own (own_kernels.h); elsewhere those chains.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// x [..., D] * weight [D] / rms(x), the mean square taken in at least f32 (Zhang & Sennrich, arXiv 1910.07467).
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);

/// Computes rms_norm() rounded once, after the product with the weight, which may have a wider type than x.
Tensor rms_norm_precise(const Tensor& x, const Tensor& weight, double eps);

/// f64 for f64, f32 for all others.
at::ScalarType precise_type(const Tensor& x);

struct NormedSum {
  Tensor sum;     ///< new residual stream
  Tensor normed;  ///< rms_norm of it
};
/// x + added of one shape, and its norm: a layer's passage from attention to its MLP.
NormedSum add_rms_norm(const Tensor& x, const Tensor& added, const Tensor& weight, double eps);

/// silu(gate) * up, the SwiGLU activation (Shazeer, arXiv 2002.05202); both of one shape.
Tensor silu_times(const Tensor& gate, const Tensor& up);

/// Computes the same of [..., 2 F], gates before ups, as one product with both matrices gives them.
Tensor silu_times_halves(const Tensor& both);

/// Rotary embedding (Su et al., arXiv 2104.09864) of pairs (i, i + C / 2), as Llama checkpoints lay them out:
/// x [B, T, H, C] with cosines and sines [B, T, 1, C] in x's dtype. The tables are constants.
Tensor rotate_pairs(const Tensor& x_BTHC, const Tensor& cos_BT1C, const Tensor& sin_BT1C);

/// Tables of rotate_pairs(); undefined: nothing is turned.
struct RotaryTables {
  Tensor cos_BT1C;
  Tensor sin_BT1C;
};

/// Contiguous.
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

/// Splits what one product with the matrices of queries, keys and values gives, [B, T, (H + 2 K) C], and turns queries
/// and keys. Its gradient is joined again for one product back.
SplitHeads split_heads(const Tensor& joined, HeadCounts counts, const RotaryTables& tables);

}  // namespace lancet
