#include "lancet/edit/self_corpus.h"

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/models/generate.h"
#include "lancet/models/memory.h"

namespace lancet {
namespace {

/// Raised when other documents are sampled from the same plan.
constexpr std::string_view kFormat = "lancet-self-corpus-1";

/// Keys and values of the documents that are sampled together; the most of them. Documents of a round begin together,
/// and the last steps of a round are for the few that are long: large rounds waste less.
constexpr int64_t kCacheBytes = int64_t{2} << 30;
constexpr int64_t kMostRows = 1024;

}  // namespace

int64_t sampling_rows(const ModelConfig& config, at::ScalarType dtype, int64_t most_tokens) {
  const int64_t row_bytes = config.n_layers * key_value_bytes(config, dtype, most_tokens);
  return std::clamp<int64_t>(kCacheBytes / row_bytes, 1, kMostRows);
}

SelfCorpusPlan plan_self_corpus(const Tokenizer& tokenizer, const ModelConfig& config, const StatisticsOptions& options,
                                uint64_t seed) {
  if (options.tokens < config.d_ffn)
    throw ConfigError(cat("statistics.tokens: ", options.tokens, ", but a covariance of size ", config.d_ffn,
                          " needs at least as many: raise statistics.tokens"));
  const std::optional<TokenId> bos = tokenizer.bos_id();
  if (!bos && config.eos_ids.empty())
    throw ConfigError(
        "statistics.corpus: self: expected a BOS or EOS token, which documents begin with, got neither in the model's "
        "files: give a file of text as statistics.corpus");
  return {.begin = bos ? *bos : config.eos_ids.front(),
          .tokens = options.tokens,
          .most_tokens = std::min(options.document_tokens, config.max_positions),
          .seed = seed};
}

CorpusTokens sample_corpus(const CausalLM& model, const SelfCorpusPlan& plan) {
  const std::vector<GenerateRow> rows(
      static_cast<size_t>(sampling_rows(model.config(), model.placement().weight_dtype(), plan.most_tokens)),
      GenerateRow{{plan.begin}, plan.most_tokens - 1});
  const int64_t n_rows = static_cast<int64_t>(rows.size());
  GenerateOptions options{.eos_ids = model.config().eos_ids,
                          .top_k = 0,
                          .seed = plan.seed,
                          .first_row = 0,
                          .batch_tokens = n_rows * plan.most_tokens};
  CorpusTokens corpus;
  Progress progress("sampling", plan.tokens, "tokens");
  for (; corpus.tokens < plan.tokens; options.first_row += n_rows) {
    const int64_t before = corpus.tokens;
    for (std::vector<TokenId>& document : generate(model, rows, options)) {
      if (document.empty()) continue;  // the model said nothing
      document.insert(document.begin(), plan.begin);
      document.resize(std::min(document.size(), static_cast<size_t>(plan.tokens - corpus.tokens)));
      if (document.empty()) break;
      corpus.tokens += static_cast<int64_t>(document.size());
      corpus.documents.push_back(std::move(document));
    }
    if (corpus.tokens == before)
      throw ConfigError(cat("statistics.corpus: self: the model ended each of ", n_rows,
                            " documents at once: give a file of text as statistics.corpus"));
    progress.set(corpus.tokens);
  }
  return corpus;
}

StatisticsText sampled_text(const CausalLM& model, const Checkpoint& checkpoint, const SelfCorpusPlan& plan) {
  ContentHash hash;
  hash.add(kFormat)
      .add(checkpoint.content_hash())
      .add(plan.begin)
      .add(plan.tokens)
      .add(plan.most_tokens)
      .add(static_cast<int64_t>(plan.seed));
  return {hash.hex(), [&model, plan] { return sample_corpus(model, plan); }};
}

}  // namespace lancet
