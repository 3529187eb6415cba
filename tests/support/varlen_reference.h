// What the variable-length attention kernel is meant to compute, from its arguments alone, in plain torch.
#pragma once

#include <torch/types.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lancet/kernels/attention.h"

namespace lancet::testing {

/// A lancet::VarlenKernel for any device and type, differentiable.
inline Tensor plain_varlen(const Tensor& query_PHC, const Tensor& key_PKC, const Tensor& value_PKC,
                           const DocumentBounds& documents, double scale) {
  const Tensor bounds = documents.bounds.cpu();
  std::vector<Tensor> parts_THC;
  for (int64_t i = 0; i + 1 < bounds.size(0); ++i) {
    const auto heads = [&](const Tensor& x_PHC) {
      const Tensor mine_HTC = x_PHC.slice(0, bounds[i].item<int>(), bounds[i + 1].item<int>()).transpose(0, 1);
      return mine_HTC.repeat_interleave(query_PHC.size(1) / x_PHC.size(1), 0);
    };
    const Tensor scores_HTT = heads(query_PHC).matmul(heads(key_PKC).transpose(1, 2)) * scale;
    const Tensor hidden_TT = torch::ones_like(scores_HTT[0], torch::kBool).triu(1);
    const Tensor weights_HTT = scores_HTT.masked_fill(hidden_TT, -std::numeric_limits<double>::infinity()).softmax(-1);
    TORCH_CHECK(scores_HTT.size(1) <= documents.most_tokens, "a document is longer than the most");
    parts_THC.push_back(weights_HTT.matmul(heads(value_PKC)).transpose(0, 1));
  }
  return torch::cat(parts_THC);
}

}  // namespace lancet::testing
