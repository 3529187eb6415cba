#include "lancet/editing/target_form.h"

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {

TargetForm target_form(const TargetRule& rule, const ModelConfig& config, const Tokenizer& tokenizer) {
  if (rule.end == TargetEnd::kNone) return {rule.compat, std::nullopt, rule.chunk_tokens};
  const std::optional<TokenId> end = tokenizer.eos_id();
  const bool stops = end && std::ranges::find(config.eos_ids, *end) != config.eos_ids.end();
  if (!stops && rule.end == TargetEnd::kEos)
    throw ConfigError(cat("editor.target_end: eos: expected a tokenizer with an end token at which generation stops, ",
                          end ? cat("got ", *end,
                                    ", which generation_config.json and config.json do not have in "
                                    "eos_token_id")
                              : "got one without",
                          ": set none"));
  return {rule.compat, stops ? end : std::nullopt, rule.chunk_tokens};
}

}  // namespace lancet
