// The text that statistics are taken over, as token ids. Differs from the reference: documents in file order until the
// token budget is used (not a sample of Wikipedia), each cut at `document_tokens`.
#pragma once

#include <cstdint>
#include <vector>

#include "lancet/models/model_config.h"
#include "lancet/runtime/communicator.h"
#include "lancet/spec/statistics_options.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

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

}  // namespace lancet
