// What a model would say after each of its layers. Source: the logit lens (nostalgebraist 2020): a layer's hidden state
// through the final norm and the head.
#pragma once

#include <cstdint>
#include <vector>

#include "lancet/models/causal_lm.h"

namespace lancet {

/// One token after one prompt, by layer.
struct LogitLens {
  std::vector<double> probability;
  std::vector<int64_t> rank;  ///< 1: no token is likelier
};

/// Throws: NumericError when a probability is not finite.
LogitLens look_through(const CausalLM& model, const std::vector<TokenId>& prompt, TokenId token);

}  // namespace lancet
