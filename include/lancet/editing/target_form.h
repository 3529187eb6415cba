// What targets end with, and whose tokenisation they have: what a job says of it, and what that is for a model.
#pragma once

#include "lancet/models/model_config.h"
#include "lancet/requests/prepared_request.h"

namespace lancet {

/// What targets end with.
enum class TargetEnd {
  kNone,  ///< nothing more
  kEos,   ///< the tokenizer's end token
  kAuto   ///< that where generation ends at it, else nothing
};

/// How a method makes ids of targets, whatever the model.
struct TargetRule {
  Compat compat = Compat::kNone;  ///< whose tokenisation it takes
  TargetEnd end = TargetEnd::kNone;
  int64_t chunk_tokens = 0;  ///< TargetForm's
};

/// Returns the rule for a model. Throws: ConfigError for kEos where the tokenizer has no end token, or generation does
/// not end at it.
TargetForm target_form(const TargetRule& rule, const ModelConfig& config, const Tokenizer& tokenizer);

}  // namespace lancet
