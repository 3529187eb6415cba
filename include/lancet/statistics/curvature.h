// How far the loss on text bends when a weight changes: by K-FAC the Kronecker product of two second moments, A of the
// weight's inputs and B of the loss's gradients at its outputs. Source: CrispEdit (arXiv 2602.15823): of the
// products of an eigenvector of B and one of A, those are left alone whose eigenvalues' products are the largest and
// together the share `energy` of the sum of all.
#pragma once

#include <cstdint>
#include <string>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Second moments by their eigenvectors.
struct MomentSpectrum {
  Tensor values_N;    ///< f64, ascending, none below 0
  Tensor vectors_NN;  ///< a column for each
  int64_t tokens = 0;
};

struct Curvature {
  MomentSpectrum inputs;     ///< spectrum of A
  MomentSpectrum gradients;  ///< spectrum of B
};

/// Returns the spectrum of moments [N, N] f64, or of experts their blocks' [E, W, W], on their device. Throws:
/// NumericError naming `where` when they are not finite.
MomentSpectrum make_spectrum(const Tensor& moment_NN, int64_t tokens, const std::string& where);

/// Returns the spectrum of the mean over the tokens and over these rows, each of which counts as one token.
MomentSpectrum joined(const MomentSpectrum& text, const Tensor& rows_MN, const std::string& where);

/// The products of eigenvectors in which a weight may change.
struct LowCurvature {
  Tensor allowed_OI;  ///< bool: of the i-th eigenvector of B and the j-th of A
  double below = 0;   ///< products of eigenvalues below it are allowed
};

/// Throws: NumericError naming `where` when nothing is left, or the curvature is 0.
LowCurvature find_low_curvature(const Curvature& curvature, double energy, const std::string& where);

}  // namespace lancet
