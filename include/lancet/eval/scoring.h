// Teacher-forced scores of given continuations. What continuations begin with in common is run once: their documents (a
// prompt and its target without the last token) are packed (models/sequence_info.h), and the head reads a place once.
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
  std::vector<TokenId> prompt;  ///< one token or more
  std::vector<TokenId> target;  ///< one token or more
};

struct ContinuationScore {
  double nll = 0;               ///< mean over the target's tokens of -log p(token | prompt, target before it)
  std::vector<TokenId> argmax;  ///< the likeliest token at each place of the target; of equal ones the smallest id
};

/// How much scoring runs.
struct ScoringSize {
  int64_t tokens = 0;           ///< tokens that go through the layers, in all
  int64_t pack_tokens = 0;      ///< tokens that go through the layers together, at most
  int64_t pack_places = 0;      ///< likewise, tokens that documents share counted for each of them
  int64_t run_places = 0;       ///< places of documents of one length among them, at most
  int64_t document_tokens = 0;  ///< length of the longest document
  int64_t read_places = 0;      ///< whose logits are computed, in all

  /// Returns the size for documents that share nothing, whose lengths are not told apart; passes of at most
  /// kForwardTokens, or of the longest document.
  static ScoringSize of_whole_documents(int64_t tokens, int64_t longest_document, int64_t read_places);
};
ScoringSize scoring_size(std::span<const Continuation> continuations);

/// Collective: packs are spread over ranks, all of which get the whole. One score per continuation. Log-softmax in f32
/// (f64 models: f64). Packs depend on the continuations alone.
std::vector<ContinuationScore> score_continuations(const CausalLM& model, std::span<const Continuation> continuations,
                                                   const std::string& stage, Communicator& communicator);

}  // namespace lancet
