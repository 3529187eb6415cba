// The curvature of the loss on text with respect to a weight. K-FAC approximates it by the Kronecker product of two
// second moments: A of the weight's inputs, and B of the loss's gradients at its outputs. Source: CrispEdit (arXiv
// 2602.15823). Consider the products of an eigenvector of B and one of A. Those with the largest products of
// eigenvalues, which together make up the share `energy` of the sum of all, stay unchanged.
#pragma once

#include <cstdint>
#include <string>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Eigenvalues and eigenvectors of second moments.
struct MomentSpectrum {
  Tensor values_N;    ///< f64, ascending, none negative
  Tensor vectors_NN;  ///< one eigenvector per column
  int64_t tokens = 0;
};

struct Curvature {
  MomentSpectrum inputs;     ///< spectrum of A
  MomentSpectrum gradients;  ///< spectrum of B
};

/// Computes the spectrum of moments [N, N] f64 on their device, or for experts the spectra of their blocks [E, W, W].
/// Throws: NumericError that names `where` when they are not finite.
MomentSpectrum make_spectrum(const Tensor& moment_NN, int64_t tokens, const std::string& where);

/// Returns the spectrum of the mean over the text's tokens and these rows, each of which counts as one token.
MomentSpectrum joined(const MomentSpectrum& text, const Tensor& rows_MN, const std::string& where);

/// The products of eigenvectors along which a weight may change.
struct LowCurvature {
  Tensor allowed_OI;  ///< bool: whether the product of the i-th eigenvector of B and the j-th of A is allowed
  double below = 0;   ///< products are allowed whose eigenvalues' product is below this
};

/// Finds them. Throws: NumericError that names `where` when no product is allowed, or the curvature is 0.
LowCurvature find_low_curvature(const Curvature& curvature, double energy, const std::string& where);

}  // namespace lancet
