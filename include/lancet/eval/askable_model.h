// A loaded model that answers questions given as token ids: for tasks of other programs and for sessions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lancet/eval/scoring.h"
#include "lancet/eval/token_scores.h"
#include "lancet/models/causal_lm.h"
#include "lancet/models/generate.h"
#include "lancet/runtime/communicator.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

class AskableModel {
 public:
  /// All arguments must outlive this.
  AskableModel(const CausalLM& model, const Tokenizer& tokenizer, Communicator& ranks)
      : model_(model), tokenizer_(tokenizer), ranks_(ranks) {}

  const ModelConfig& config() const { return model_.config(); }
  const Tokenizer& tokenizer() const { return tokenizer_; }

  /// Collective. Calls score_continuations(). Throws: ConfigError for empty prompts or targets, for ids without an
  /// embedding, and for more tokens than the model has positions.
  std::vector<ContinuationScore> score(std::span<const Continuation> continuations) const;

  /// Returns whether a row ends after the ids that were added to it.
  using RowEnds = std::function<bool(int64_t row, std::span<const TokenId> added)>;
  /// Generates greedily until one of `end_ids`, or until `ends` returns true. `ends` is called from several threads,
  /// for rows of several batches. Throws: as score().
  std::vector<std::vector<TokenId>> generate(std::span<const GenerateRow> rows, std::vector<TokenId> end_ids,
                                             const RowEnds& ends = {}) const;
  /// Generates as `options` say, which may include sampling. Throws: as lancet::generate(), and as score().
  std::vector<std::vector<TokenId>> generate_by(std::span<const GenerateRow> rows,
                                                const GenerateOptions& options) const;

  /// Scores each token of a text from index `first` on. Throws: as score().
  std::vector<TokenScore> score_tokens(std::span<const TokenId> ids, size_t first, int64_t top) const;

 private:
  const CausalLM& model_;
  const Tokenizer& tokenizer_;
  Communicator& ranks_;
};

}  // namespace lancet
