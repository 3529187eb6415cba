// Teacher-forced scores of given continuations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lancet/models/causal_lm.h"
#include "lancet/runtime/communicator.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

/// A prompt and what might follow it, as ids.
struct Continuation {
  std::vector<TokenId> prompt;  ///< at least one token
  std::vector<TokenId> target;  ///< at least one token
};

struct ContinuationScore {
  double nll = 0;               ///< mean over the target's tokens of -log p(token | prompt, target before it)
  std::vector<TokenId> argmax;  ///< the likeliest token at each place of the target
};

/// Collective: batches are spread over ranks, all of which get the whole. One score per continuation. Logits are
/// computed at the target's positions only; log-softmax in f32 (f64 models: f64).
std::vector<ContinuationScore> score_continuations(const CausalLM& model, std::span<const Continuation> continuations,
                                                   const std::string& stage, Communicator& communicator);

}  // namespace lancet
