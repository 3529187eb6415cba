#include "chunks.h"

#include <torch/types.h>

#include <limits>

namespace lancet {

ChunkDecays chunk_decays(const Tensor& decay_RHT) {
  const int64_t n = decay_RHT.size(2);
  const Tensor ones_TT = torch::ones({n, n}, decay_RHT.options()), is_later = ones_TT.triu(1).to(torch::kBool);
  const Tensor sum_RHT = torch::matmul(decay_RHT, ones_TT.triu());  // with the same order on any device
  const Tensor faded_RHTT = (sum_RHT.unsqueeze(3) - sum_RHT.unsqueeze(2))
                                .masked_fill(is_later, -std::numeric_limits<double>::infinity())
                                .exp();
  const Tensor last_RH1 = sum_RHT.narrow(2, n - 1, 1);
  return {sum_RHT, faded_RHTT, (last_RH1 - sum_RHT).exp(), last_RH1.exp().unsqueeze(3)};
}

}  // namespace lancet
