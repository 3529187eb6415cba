// Rows of tokens up to their lookup tokens: what does not depend on a value that is added there, computed once.
#pragma once

#include <span>
#include <vector>

#include "lancet/models/causal_lm.h"
#include "lancet/requests/prepared_request.h"

namespace lancet {

struct TokenRows {
  std::vector<std::vector<TokenId>> ids;         ///< whole rows
  std::vector<int64_t> lookups;                  ///< their lookup tokens
  std::vector<std::span<const HeldValue>> held;  ///< deltas in place before them; rows of a request share theirs
};

/// States of rows at the input of one layer and in those above.
struct RowStates {
  Tensor own_ND;   ///< hidden states into the layer of each row's tokens from its lookup token on, row after row
  KeyValues pool;  ///< keys and values, from the layer on, of the tokens before: each once, in its only row
  std::vector<std::vector<int64_t>> earlier;  ///< each row's tokens before the lookup token, as places in the pool
};

/// Runs every layer on the tokens before the lookup tokens, and those below `first`'s on all tokens; held deltas are
/// added at `first`, a layer's kBlockIn or kMlpOut. What rows begin with alike is run once. Without gradients.
RowStates run_to_lookups(const CausalLM& model, const TokenRows& rows, HookSite first);

}  // namespace lancet
