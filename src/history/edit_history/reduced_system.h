// The algebra that takes keys out of one solved system.
#pragma once

#include <string>
#include <vector>

#include "lancet/runtime/tensor.h"

namespace lancet {

struct ReducedSystem {
  Tensor right_IF = {};         ///< U'
  Tensor inverse_gram_II = {};  ///< V'
  double error = 0;             ///< ReducedBatch::error
};

/// Reduces U [N, F] and K [F, N], in f64 on the host. `inverse_gram_NN`: undefined if it is I - U K. `kept`, `dropped`:
/// indices of keys; neither is empty. Throws: NumericError that names `where`, if the bound of the error is above
/// kLargestDowndateError.
ReducedSystem reduce_system(const Tensor& right_NF, const Tensor& keys_FN, const Tensor& inverse_gram_NN,
                            const std::vector<int64_t>& kept, const std::vector<int64_t>& dropped,
                            const std::string& where);

}  // namespace lancet
