// The algebra of a downdate, of one system.
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

/// Reduces U [N, F] and K [F, N], f64 on the host. `inverse_gram_NN`: undefined where it is I - U K. `kept`, `dropped`:
/// which keys; neither is empty. Throws: NumericError naming `where` when the bound is above kLargestDowndateError.
ReducedSystem reduce_system(const Tensor& right_NF, const Tensor& keys_FN, const Tensor& inverse_gram_NN,
                            const std::vector<int64_t>& kept, const std::vector<int64_t>& dropped,
                            const std::string& where);

}  // namespace lancet
