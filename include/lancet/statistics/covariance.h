// Second moments of MLP keys over text: C_l = E[k k^T], un-centred, from one forward pass for all layers.
// Source: ROME (arXiv 2202.05262, appendix), as MEMIT uses it: the tokens of every document, BOS included.
// Differs from the reference: documents are packed without padding, each attending only to itself, and a beginning that
// several documents share goes through the model once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lancet/models/causal_lm.h"
#include "lancet/models/model_config.h"
#include "lancet/runtime/communicator.h"
#include "lancet/spec/statistics_options.h"
#include "lancet/statistics/partial_sums.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

// The text for statistics, as token ids. Differs from the reference: it takes documents in file order until the token
// budget is used (not a sample of Wikipedia), and cuts each at `document_tokens`.

/// The token ids of the corpus, cut to the budget.
struct CorpusTokens {
  std::vector<std::vector<TokenId>> documents;
  int64_t tokens = 0;
  bool exhausted = false;  ///< whether the corpus has fewer tokens than requested, so that all of it is used
  bool only_ends = false;  ///< only the key at the last token of each document counts
};

/// Reads the corpus. Throws: ConfigError when it cannot be read, or has fewer tokens than a key of the model has
/// dimensions.
CorpusTokens read_corpus(const Tokenizer& tokenizer, const StatisticsOptions& options, const ModelConfig& config);

/// Collective. Returns root's corpus on every rank.
CorpusTokens broadcast_corpus(Communicator& communicator, const CorpusTokens& corpus);

/// One layer's statistics.
struct Covariance {
  /// E[k k^T], f64, exactly symmetric, on the layer's solve device. With experts [E, W, W]: one matrix per expert, each
  /// averaged over all tokens.
  Tensor moment_FF;
  int64_t tokens = 0;
};

/// Returns the number of tokens per chunk of the pass: at most kForwardTokens, or fewer if the activations would take
/// more than 1 GB. A document is never cut; a longer one is a chunk of its own.
int64_t statistics_chunk_tokens(const ModelConfig& config, at::ScalarType dtype);
/// Returns up to 16,384 tokens: as many as a pass for `layers` (ascending) has memory for on every accelerator that it
/// uses, if the placement says how much that is. Otherwise, and on the host, as the function above.
int64_t statistics_chunk_tokens(const ModelConfig& config, const Placement& placement, std::span<const int64_t> layers);

struct PassOptions {
  int64_t chunk_tokens = 0;  ///< tokens per chunk, the same on all ranks; 0: as the model's type determines
  /// A rank's share of the pass resumes from what an earlier run saved with the same chunks, with bitwise equal
  /// results, and saves its own progress. The caller removes the file once the result is safe.
  PartialSums* saves = nullptr;
};

/// Collective. Runs the forward pass, with chunks spread over the ranks, and stops after the last layer's keys. The
/// moments are over all tokens, or over the documents' last tokens (CorpusTokens::only_ends). Every rank gets the whole
/// result: one Covariance per layer of `layers` (ascending).
std::vector<Covariance> collect_covariances(const CausalLM& model, const CorpusTokens& corpus,
                                            std::span<const int64_t> layers, Communicator& communicator,
                                            PassOptions options = {});

}  // namespace lancet
