#include "lancet/edit/corpus.h"

#include <algorithm>
#include <optional>
#include <string>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"

namespace lancet {

CorpusTokens read_corpus(const Tokenizer& tokenizer, const StatisticsOptions& options, const ModelConfig& config) {
  CorpusTokens corpus;
  const size_t cap = static_cast<size_t>(std::min(options.document_tokens, config.max_positions));
  DocumentReader reader(options.corpus);
  while (corpus.tokens < options.tokens) {
    const std::optional<std::string> text = reader.next();
    if (!text) {
      corpus.exhausted = true;
      break;
    }
    std::vector<TokenId> ids = tokenizer.ids(*text);
    const size_t left = static_cast<size_t>(options.tokens - corpus.tokens);
    ids.resize(std::min({ids.size(), cap, left}));
    if (ids.empty()) continue;
    corpus.tokens += static_cast<int64_t>(ids.size());
    corpus.documents.push_back(std::move(ids));
  }
  if (corpus.tokens < config.d_ffn)
    throw ConfigError(cat("statistics: ", options.corpus.string(), ": ", corpus.tokens,
                          " tokens, but a covariance of size ", config.d_ffn,
                          " needs at least as many. Use a larger corpus or raise statistics.tokens"));
  return corpus;
}

}  // namespace lancet
