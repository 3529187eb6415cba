// Second moments of MLP keys over text: C_l = E[k k^T], un-centred, one forward pass for all layers, cached by content.
// Source: ROME (arXiv 2202.05262, appendix), as MEMIT uses it: tokens of every document, BOS included. Differs from the
// reference: documents in file order until the token budget is used (not a sample of Wikipedia), each cut at
// `document_tokens`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/models/causal_lm.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

struct StatisticsOptions {
  std::filesystem::path corpus;    ///< text (a document per line) or .jsonl ("text")
  int64_t tokens = 1'000'000;      ///< budget, BOS tokens included
  int64_t document_tokens = 2048;  ///< longer documents are cut; never more than the model's positions
  double ridge = 0.0;              ///< added to C, relative to trace(C) / n, before it is factored
  std::filesystem::path cache;     ///< folder of cached covariances
};

/// `statistics:` of a job; relative paths are taken from `base`.
StatisticsOptions parse_statistics_options(ConfigSection section, const std::filesystem::path& base);

/// One layer's statistics.
struct Covariance {
  Tensor moment_FF;  ///< E[k k^T], f64, on the layer's solve device
  int64_t tokens = 0;
};

/// Token ids of the corpus, cut to the budget.
struct CorpusTokens {
  std::vector<std::vector<TokenId>> documents;
  int64_t tokens = 0;
  bool exhausted = false;  ///< the corpus has fewer tokens than asked for: used whole
};

/// Throws: ConfigError when the corpus cannot be read, or has fewer tokens than a key of the model has dimensions.
CorpusTokens read_corpus(const Tokenizer& tokenizer, const StatisticsOptions& options, const ModelConfig& config);

/// The forward pass: one Covariance per layer of `layers` (ascending). Stops behind the last layer's keys.
std::vector<Covariance> collect_covariances(const CausalLM& model, const CorpusTokens& corpus,
                                            std::span<const int64_t> layers);

/// Covariances from the cache, or collected and put there.
class StatisticsStore {
 public:
  /// `checkpoint` is where the model's weights came from: its bytes are part of the cache's keys. `cache`: the folder.
  StatisticsStore(const CausalLM& model, const Checkpoint& checkpoint, const CorpusTokens& corpus,
                  std::filesystem::path cache);

  /// In the order of `layers`. Throws: CheckpointError when the cache cannot be written, or holds a damaged file.
  std::vector<Covariance> load(std::span<const int64_t> layers);

  /// Layers of the last load() that came from the cache.
  const std::vector<int64_t>& cached_layers() const { return cached_layers_; }
  /// Cache file of a layer: <cache>/<content key>.safetensors.
  std::filesystem::path cache_file(int64_t layer) const;

 private:
  const CausalLM& model_;
  const Checkpoint& checkpoint_;
  const CorpusTokens& corpus_;
  std::filesystem::path cache_;
  std::string corpus_key_;
  std::vector<int64_t> cached_layers_;
};

}  // namespace lancet
