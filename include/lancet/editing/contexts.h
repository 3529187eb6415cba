// Context templates: openings in which a fact is trained and its key is measured, so that an edit does not hang on the
// bare prompt. Source: MEMIT (arXiv 2210.07229, section 4). Differs from the reference: sampled from a stated seed and
// kept with the run; the texts are not NFKD-normalised.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/models/causal_lm.h"
#include "lancet/models/model_config.h"
#include "lancet/models/model_files.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/runtime/communicator.h"
#include "lancet/spec/values_spec.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

/// Either templates given by the user, or how many to generate.
struct ContextOptions {
  enum class Opening {
    kPlain,   ///< generated templates are text alone
    kWithBos  ///< the tokenizer's BOS stands before them as text, where it is read back as a token: Llama-3's templates
              ///< in AlphaEdit's code begin with a second BOS. "<s>" is left out, as in unified-model-editing
  };
  std::vector<std::string> templates = {};               ///< the first is exactly "{}"; empty: generate
  int64_t generate = *ContextsSpec::kGenerate.fallback;  ///< continuations of "The", "Therefore", "Because", "I", "You"
  int64_t length = *ContextsSpec::kLength.fallback;      ///< tokens of each, BOS and opening included
  std::string chat = {};                                 ///< pattern or "model": a chat's turns besides; empty: none
  Opening opening = Opening::kPlain;                     ///< set by editor.compat, no key of its own
};

/// `contexts:` of an editor: a list of templates, or {generate, length}.
/// Problems: a template without exactly one "{}", a list without a plain "{}".
ContextOptions parse_context_options(ConfigSection& editor);

/// What stands before generated templates.
std::string template_opening(const Tokenizer& tokenizer, ContextOptions::Opening opening);

/// The context in which the prompt is a user's message, as `options` has it; nullopt: none. `model`: the checkpoint's
/// folder. Throws: ConfigError, TokenizerError (ChatTemplate).
std::optional<std::string> chat_context(const ContextOptions& options, const std::filesystem::path& model,
                                        const Tokenizer& tokenizer);

/// Collective: root's, on every rank. The templates to use; "{}" first. Top-5 sampling on the model as it is.
std::vector<std::string> make_contexts(const CausalLM& model, const ModelFiles& files, const ContextOptions& options,
                                       uint64_t seed, Communicator& communicator);

// What targets end with, and whose tokenisation they have: what a job says of it, and what that is for a model.

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
