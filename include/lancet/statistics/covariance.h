// Second moments of MLP keys over text: C_l = E[k k^T], un-centred, one forward pass for all layers.
// Source: ROME (arXiv 2202.05262, appendix), as MEMIT uses it: tokens of every document, BOS included.
// Differs from the reference: documents are packed without padding, each seeing only itself, and what several begin
// with goes through the model once.
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

// The text that statistics are taken over, as token ids. Differs from the reference: documents in file order until the
// token budget is used (not a sample of Wikipedia), each cut at `document_tokens`.

/// Token ids of the corpus, cut to the budget.
struct CorpusTokens {
  std::vector<std::vector<TokenId>> documents;
  int64_t tokens = 0;
  bool exhausted = false;  ///< the corpus has fewer tokens than asked for: used whole
};

/// Throws: ConfigError when the corpus cannot be read, or has fewer tokens than a key of the model has dimensions.
CorpusTokens read_corpus(const Tokenizer& tokenizer, const StatisticsOptions& options, const ModelConfig& config);

/// Collective: root's, on every rank.
CorpusTokens broadcast_corpus(Communicator& communicator, const CorpusTokens& corpus);

/// One layer's statistics.
struct Covariance {
  /// E[k k^T], f64, exactly symmetric, on the layer's solve device. Of experts [E, W, W]: each one's, over all tokens.
  Tensor moment_FF;
  int64_t tokens = 0;
};

/// Tokens that go through the model at once: at most kForwardTokens, fewer where activations would take more than 1 GB.
/// A document is never cut: a longer one goes alone.
int64_t statistics_chunk_tokens(const ModelConfig& config, at::ScalarType dtype);
/// Counts as many as a pass for `layers` (ascending) has room for on every accelerator that it goes through, where the
/// placement says how much that is: up to 16,384; else, and on the host, as above.
int64_t statistics_chunk_tokens(const ModelConfig& config, const Placement& placement, std::span<const int64_t> layers);

struct PassOptions {
  int64_t chunk_tokens = 0;  ///< tokens of a chunk, the same on all ranks; 0: as the model's type says
  /// A rank's share of the pass goes on from what an earlier run saved with the same chunks, to the same bits, and
  /// saves itself; the caller removes the file once the result is safe.
  PartialSums* saves = nullptr;
};

/// Collective: chunks are spread over ranks, all of which get the whole. The forward pass: one Covariance per layer of
/// `layers` (ascending). Stops after the last layer's keys.
std::vector<Covariance> collect_covariances(const CausalLM& model, const CorpusTokens& corpus,
                                            std::span<const int64_t> layers, Communicator& communicator,
                                            PassOptions options = {});

}  // namespace lancet
