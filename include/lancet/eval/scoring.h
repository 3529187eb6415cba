// Teacher-forced scores of given continuations. A common prefix of continuations is run once: documents (a prompt and
// its target without the last token) are packed (models/sequence_info.h), and the head is computed once per place.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lancet/models/causal_lm.h"
#include "lancet/runtime/communicator.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

/// A prompt and a possible continuation, as ids.
struct Continuation {
  std::vector<TokenId> prompt;  ///< one token or more
  std::vector<TokenId> target;  ///< one token or more
};

struct ContinuationScore {
  double nll = 0;               ///< mean over the target's tokens of -log p(token | prompt, target before it)
  std::vector<TokenId> argmax;  ///< the most likely token at each place of the target; the smallest id among equals
};

/// The amount of work of scoring.
struct ScoringSize {
  int64_t tokens = 0;           ///< tokens that run through the layers, in all
  int64_t pack_tokens = 0;      ///< most tokens that run through the layers together
  int64_t pack_places = 0;      ///< most places of a pack; a token that documents share counts once for each of them
  int64_t run_places = 0;       ///< most places of documents of one length in a pack
  int64_t document_tokens = 0;  ///< length of the longest document
  int64_t read_places = 0;      ///< places whose logits are computed, in all

  /// Returns the size for documents that share nothing and whose individual lengths are not known. Passes have at most
  /// kForwardTokens, or the tokens of the longest document.
  static ScoringSize of_whole_documents(int64_t tokens, int64_t longest_document, int64_t read_places);
};
ScoringSize scoring_size(std::span<const Continuation> continuations);

/// Collective. Distributes packs over the ranks; every rank gets all results, one score per continuation. Log-softmax
/// in f32 (f64 models: f64). Packs depend on the continuations alone.
std::vector<ContinuationScore> score_continuations(const CausalLM& model, std::span<const Continuation> continuations,
                                                   const std::string& stage, Communicator& communicator);

}  // namespace lancet
