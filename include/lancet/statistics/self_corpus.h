// `corpus: self`: documents that the model itself writes, for users without text. Each is sampled from the model's full
// distribution (temperature 1, no cut-off), so that expectations over them are expectations under the model. The random
// numbers of document i depend only on the seed and i.
#pragma once

#include "lancet/statistics/statistics_store.h"

namespace lancet {

/// Describes the documents without the model's weights.
struct SelfCorpusPlan {
  TokenId begin = 0;        ///< every document's first token
  int64_t tokens = 0;       ///< tokens of all documents, `begin` included
  int64_t most_tokens = 0;  ///< most tokens of a document, `begin` included
  uint64_t seed = 0;
  std::string note = {};  ///< text shown beside the progress of writing it
};

/// Plans the documents. Throws: ConfigError when there are fewer tokens than a key of the model has dimensions, or when
/// no token can begin a document (neither BOS nor EOS).
SelfCorpusPlan plan_self_corpus(const Tokenizer& tokenizer, const ModelConfig& config, const StatisticsOptions& options,
                                uint64_t seed);

/// Returns the most documents of at most `most_tokens` that one round samples: as many as make `tokens` if all are that
/// long, within 2 GiB of keys and values; if documents turn out short, more of them, within 256 MiB.
int64_t sampling_rows(const ModelConfig& config, at::ScalarType dtype, int64_t tokens, int64_t most_tokens);
/// Returns how many of a round's `rows` are sampled at a time: half of them if the devices have no room for solves.
int64_t sampled_together(int64_t rows, SolveOn solve_on);

/// Collective. Samples the documents, with rounds spread over the ranks; every rank gets all documents. They have
/// exactly plan.tokens tokens; the last document is cut. Throws: ConfigError when the model ends its documents
/// immediately.
CorpusTokens sample_corpus(const CausalLM& model, const SelfCorpusPlan& plan, Communicator& communicator);

/// Returns a key made from the plan and from every weight: the checkpoint's `content_hash` stands for their bytes, and
/// `rule_key` for what quantising changes (QuantiseRule::key of the model).
std::string sampled_text_key(const std::string& content_hash, const std::string& rule_key, const SelfCorpusPlan& plan);

/// Makes the sampled text with the key sampled_text_key(). `model` is not yet edited and must outlive the text.
StatisticsText sampled_text(const CausalLM& model, const std::string& content_hash, const SelfCorpusPlan& plan);

}  // namespace lancet
