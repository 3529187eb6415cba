// What a model would say after each of its layers. Source: the logit lens (nostalgebraist 2020): the final norm and the
// head are applied to a layer's hidden state.
#pragma once

#include <cstdint>
#include <vector>

#include "lancet/models/causal_lm.h"

namespace lancet {

/// The results for one token after one prompt, by layer.
struct LogitLens {
  std::vector<double> probability;
  std::vector<int64_t> rank;  ///< 1: no token is likelier
};

/// Throws: NumericError if a probability is not finite.
LogitLens look_through(const CausalLM& model, const std::vector<TokenId>& prompt, TokenId token);

}  // namespace lancet
