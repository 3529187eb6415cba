// What a weight's low-rank change was solved from, kept so that an edit can leave its batch, or join another.
#pragma once

#include <cstdint>
#include <vector>

#include "lancet/models/weight_table.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// What the change Delta = R U of one weight was solved from, U = G^-1 K^T A^-1, G = K^T A^-1 K + mu I (MEMIT and its
/// kin: mu = 1, so that G^-1 = I - U K; EMMET: its slack). On the host, f64.
struct SolvedSystem {
  WeightId id = {};
  int64_t change = 0;  ///< which of the batch's changes of this weight
  /// The edits (places in the batch) that each key is of; several where equal keys became one.
  std::vector<std::vector<int64_t>> edits = {};
  Tensor keys_FN = {};
  Tensor residuals_DN = {};
  Tensor inverse_gram_NN = {};  ///< G^-1; undefined: it is I - U K
};

}  // namespace lancet
