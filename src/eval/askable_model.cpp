#include "lancet/eval/askable_model.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

void check_ids(std::span<const TokenId> ids, size_t index, const ModelConfig& config) {
  if (ids.empty()) throw ConfigError(cat("row ", index, ": expected at least one token, got none"));
  for (const TokenId id : ids)
    if (id < 0 || id >= config.vocab_size)
      throw ConfigError(cat("row ", index, ": token ", id, ": expected one of 0 to ", config.vocab_size - 1));
}

void check_length(size_t tokens, size_t index, const ModelConfig& config) {
  if (static_cast<int64_t>(tokens) > config.max_positions)
    throw ConfigError(
        cat("row ", index, ": ", tokens, " tokens: expected at most the model's ", config.max_positions, " positions"));
}

}  // namespace

std::vector<ContinuationScore> AskableModel::score(std::span<const Continuation> continuations) const {
  for (size_t i = 0; i < continuations.size(); ++i) {
    check_ids(continuations[i].prompt, i, config());
    check_ids(continuations[i].target, i, config());
    check_length(continuations[i].prompt.size() + continuations[i].target.size() - 1, i, config());
  }
  return score_continuations(model_, continuations, "score", ranks_);
}

std::vector<std::vector<TokenId>> AskableModel::generate(std::span<const GenerateRow> rows,
                                                         std::vector<TokenId> end_ids, const RowEnds& ends) const {
  return generate_by(rows, {.eos_ids = std::move(end_ids), .sampling = {}, .ends = ends});
}

std::vector<std::vector<TokenId>> AskableModel::generate_by(std::span<const GenerateRow> rows,
                                                            const GenerateOptions& options) const {
  for (size_t i = 0; i < rows.size(); ++i) {
    check_ids(rows[i].prompt, i, config());
    check_length(rows[i].prompt.size() + static_cast<size_t>(rows[i].max_new_tokens), i, config());
  }
  return lancet::generate(model_, rows, options);
}

std::vector<TokenScore> AskableModel::score_tokens(std::span<const TokenId> ids, size_t first, int64_t top) const {
  check_ids(ids, 0, config());
  check_length(ids.size() - 1, 0, config());
  return lancet::score_tokens(model_, ids, first, top);
}

}  // namespace lancet
