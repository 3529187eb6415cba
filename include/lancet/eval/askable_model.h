// A loaded model for whoever asks it by token ids: tasks of other programs, sessions.
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
  /// All outlive this.
  AskableModel(const CausalLM& model, const Tokenizer& tokenizer, Communicator& ranks)
      : model_(model), tokenizer_(tokenizer), ranks_(ranks) {}

  const ModelConfig& config() const { return model_.config(); }
  const Tokenizer& tokenizer() const { return tokenizer_; }

  /// Collective: score_continuations(). Throws: ConfigError for empty prompts or targets, ids that the model has no
  /// embedding for, and for more tokens than it has positions.
  std::vector<ContinuationScore> score(std::span<const Continuation> continuations) const;

  /// Whether a row ends after the ids that were added to it.
  using RowEnds = std::function<bool(int64_t row, std::span<const TokenId> added)>;
  /// Greedy, to one of `end_ids` or where `ends` says so; rows of several batches are asked of from several threads.
  /// Throws: as score().
  std::vector<std::vector<TokenId>> generate(std::span<const GenerateRow> rows, std::vector<TokenId> end_ids,
                                             const RowEnds& ends = {}) const;
  /// Generates as `options` say, drawn tokens among it. Throws: as lancet::generate(), and as score().
  std::vector<std::vector<TokenId>> generate_by(std::span<const GenerateRow> rows,
                                                const GenerateOptions& options) const;

  /// Scores each token of a text from its `first` one on. Throws: as score().
  std::vector<TokenScore> score_tokens(std::span<const TokenId> ids, size_t first, int64_t top) const;

 private:
  const CausalLM& model_;
  const Tokenizer& tokenizer_;
  Communicator& ranks_;
};

}  // namespace lancet
