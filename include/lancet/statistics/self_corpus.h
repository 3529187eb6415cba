// `corpus: self`: documents that the model itself writes, for users without text. Each is sampled from the model's
// whole distribution (temperature 1, nothing cut off), so that the expectation over them is the model's own; document
// i's random numbers come from the seed and i alone.
#pragma once

#include "lancet/statistics/statistics_store.h"

namespace lancet {

/// What the documents are, without the model's weights.
struct SelfCorpusPlan {
  TokenId begin = 0;        ///< every document's first token
  int64_t tokens = 0;       ///< tokens of all documents, `begin` included
  int64_t most_tokens = 0;  ///< most tokens of a document, `begin` included
  uint64_t seed = 0;
  std::string note = {};  ///< text beside the progress of writing it
};

/// Throws: ConfigError when the tokens are fewer than a key of the model has dimensions, or no token begins a document
/// (neither BOS nor EOS).
SelfCorpusPlan plan_self_corpus(const Tokenizer& tokenizer, const ModelConfig& config, const StatisticsOptions& options,
                                uint64_t seed);

/// Documents of at most `most_tokens` that are sampled in a round at most: as many as make `tokens` when all are that
/// long, within 2 GiB of keys and values; and where documents turn out short, more, within 256 MiB.
int64_t sampling_rows(const ModelConfig& config, at::ScalarType dtype, int64_t tokens, int64_t most_tokens);
/// Returns how many of a round's `rows` are sampled at a time: half of them where devices have no room for solves.
int64_t sampled_together(int64_t rows, SolveOn solve_on);

/// Collective: rounds of documents are spread over ranks, all of which get the whole. Exactly plan.tokens tokens; the
/// last document is cut. Throws: ConfigError when the model ends its documents at once.
CorpusTokens sample_corpus(const CausalLM& model, const SelfCorpusPlan& plan, Communicator& communicator);

/// Made of the plan and of every weight: its bytes, for which `content_hash` (the checkpoint's) stands, and what
/// quantising makes of them (QuantiseRule::key of the model).
std::string sampled_text_key(const std::string& content_hash, const std::string& rule_key, const SelfCorpusPlan& plan);

/// Makes the sampled text, whose key is sampled_text_key(). `model` is not yet edited and outlives the text.
StatisticsText sampled_text(const CausalLM& model, const std::string& content_hash, const SelfCorpusPlan& plan);

}  // namespace lancet
