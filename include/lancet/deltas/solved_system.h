// The linear system behind a weight's low-rank change, kept so that an edit can leave its batch or join another one.
#pragma once

#include <cstdint>
#include <vector>

#include "lancet/models/weight_table.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// The system from which the change Delta = R U of one weight was solved: U = G^-1 K^T A^-1, G = K^T A^-1 K + mu I. For
/// MEMIT and its variants mu = 1, so that G^-1 = I - U K; for EMMET mu is its slack. On the host, f64.
struct SolvedSystem {
  WeightId id = {};
  int64_t change = 0;  ///< index among the batch's changes of this weight
  /// For each key, the edits (places in the batch) that use it; several if equal keys became one.
  std::vector<std::vector<int64_t>> edits = {};
  Tensor keys_FN = {};
  Tensor residuals_DN = {};
  Tensor inverse_gram_NN = {};  ///< G^-1; undefined: it is I - U K
};

}  // namespace lancet
