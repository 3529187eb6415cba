#include "reduced_system.h"

#include <torch/types.h>

#include <cmath>
#include <limits>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/edit_history/downdate.h"

namespace lancet {
namespace {

Tensor block(const Tensor& matrix, const Tensor& rows, const Tensor& columns) {
  return matrix.index_select(0, rows).index_select(1, columns);
}

/// Returns the norm of the difference between V = I - U K (or a stored V) and its transpose. V should be symmetric.
double asymmetry(const Tensor& inverse_gram_NN) {
  return (inverse_gram_NN - inverse_gram_NN.t()).norm().item<double>() / 2;
}

}  // namespace

ReducedSystem reduce_system(const Tensor& right_NF, const Tensor& keys_FN, const Tensor& inverse_gram_NN,
                            const std::vector<int64_t>& kept, const std::vector<int64_t>& dropped,
                            const std::string& where) {
  const torch::NoGradGuard no_grad;
  constexpr double kRounding = std::numeric_limits<double>::epsilon();
  const Tensor kept_I = torch::tensor(kept, torch::kLong), dropped_J = torch::tensor(dropped, torch::kLong);
  Tensor inverse_NN = inverse_gram_NN;
  double off = kRounding;  // because the entries themselves are rounded
  if (inverse_NN.defined()) {
    off *= inverse_NN.norm().item<double>();
  } else {
    const Tensor product_NN = torch::matmul(right_NF, keys_FN);
    off *= std::max(1.0, product_NN.norm().item<double>());
    inverse_NN = torch::eye(product_NN.size(0), product_NN.options()) - product_NN;
  }
  off += asymmetry(inverse_NN);
  inverse_NN = (inverse_NN + inverse_NN.t()) / 2;
  const Tensor dropped_JJ = block(inverse_NN, dropped_J, dropped_J);
  const auto [values_J, vectors_JJ] = at::linalg_eigh(dropped_JJ);
  const double smallest = values_J.min().item<double>();
  // V_JJ = vectors diag(values) vectors^T
  const Tensor kept_IJ = torch::matmul(block(inverse_NN, kept_I, dropped_J), vectors_JJ).div(values_J);  // V_IJ V_JJ^-1
  const Tensor weights_IJ = torch::matmul(kept_IJ, vectors_JJ.t());
  const Tensor right_JF = right_NF.index_select(0, dropped_J);
  ReducedSystem reduced;
  reduced.right_IF = right_NF.index_select(0, kept_I) - torch::matmul(weights_IJ, right_JF);
  reduced.inverse_gram_II =
      block(inverse_NN, kept_I, kept_I) - torch::matmul(weights_IJ, block(inverse_NN, dropped_J, kept_I));
  const double size = reduced.right_IF.norm().item<double>();
  // the error of V_IJ V_JJ^-1 is at most off (1 + |V_IJ V_JJ^-1|) / lambda_min
  const double moved = (1 + weights_IJ.norm().item<double>()) * right_JF.norm().item<double>();
  reduced.error = kRounding + (moved > 0 ? off / smallest * moved / size : 0);
  if (!(smallest > 0) || !(reduced.error <= kLargestDowndateError))
    throw NumericError(cat(where,
                           ": the edits are too closely bound to others of their batch: without them the change ",
                           "would be off by up to ", reduced.error, " of its size by rounding, and at most ",
                           kLargestDowndateError, " is taken; use --mode replay"));
  return reduced;
}

}  // namespace lancet
