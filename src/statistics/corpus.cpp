#include "lancet/statistics/corpus.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/runtime/collectives.h"

namespace lancet {

CorpusTokens read_corpus(const Tokenizer& tokenizer, const StatisticsOptions& options, const ModelConfig& config) {
  CorpusTokens corpus;
  const size_t cap = static_cast<size_t>(std::min(options.document_tokens, config.max_positions));
  const int64_t budget = options.token_budget(config.least_tokens());
  DocumentReader reader(options.corpus);
  while (corpus.tokens < budget) {
    const std::optional<std::string> text = reader.next();
    if (!text) {
      corpus.exhausted = true;
      break;
    }
    std::vector<TokenId> ids = tokenizer.ids(*text);
    const size_t left = static_cast<size_t>(budget - corpus.tokens);
    ids.resize(std::min({ids.size(), cap, left}));
    if (ids.empty()) continue;
    corpus.tokens += static_cast<int64_t>(ids.size());
    corpus.documents.push_back(std::move(ids));
  }
  if (corpus.tokens < config.least_tokens())
    throw ConfigError(cat("statistics: ", options.corpus.string(), ": ", corpus.tokens,
                          " tokens, but covariances of this model's keys need at least ", config.least_tokens(),
                          ". Use a larger corpus or raise statistics.tokens"));
  return corpus;
}

CorpusTokens broadcast_corpus(Communicator& communicator, const CorpusTokens& corpus) {
  if (communicator.size() == 1) return corpus;
  std::vector<int64_t> lengths{corpus.tokens, corpus.exhausted ? 1 : 0};
  std::string ids;
  communicator.run_collectively("statistics", [&] {
    for (const std::vector<TokenId>& document : corpus.documents) {
      lengths.push_back(static_cast<int64_t>(document.size()));
      ids.append(reinterpret_cast<const char*>(document.data()), document.size() * sizeof(TokenId));
    }
  });
  lengths = broadcast_numbers(communicator, lengths);
  ids = communicator.broadcast(std::move(ids));
  CorpusTokens received{{}, lengths.at(0), lengths.at(1) == 1};
  size_t at = 0;
  for (size_t i = 2; i < lengths.size(); ++i) {
    std::vector<TokenId>& document = received.documents.emplace_back(static_cast<size_t>(lengths[i]));
    const size_t bytes = document.size() * sizeof(TokenId);
    std::memcpy(document.data(), ids.data() + at, bytes);
    at += bytes;
  }
  return received;
}

}  // namespace lancet
