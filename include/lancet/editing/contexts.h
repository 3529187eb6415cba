// Context templates: prefixes with which a fact is trained and its key is measured, so that an edit does not depend on
// the bare prompt. Source: MEMIT (arXiv 2210.07229, section 4). Differs from the reference: templates are sampled from
// a stated seed and stored with the run; the texts are not NFKD-normalised.
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

/// Templates given by the user, or the number of templates to generate.
struct ContextOptions {
  enum class Opening {
    kPlain,  ///< generated templates are plain text
    /// The tokenizer's BOS precedes them as text, if the tokenizer reads it back as a token: Llama-3's templates in
    /// AlphaEdit's code begin with a second BOS. "<s>" is left out, as in unified-model-editing.
    kWithBos
  };
  std::vector<std::string> templates = {};               ///< the first is exactly "{}"; empty: generate
  int64_t generate = *ContextsSpec::kGenerate.fallback;  ///< continuations of "The", "Therefore", "Because", "I", "You"
  int64_t length = *ContextsSpec::kLength.fallback;      ///< tokens of each, BOS and opening included
  std::string chat = {};                                 ///< "model" or a pattern: adds a chat's turns; empty: none
  Opening opening = Opening::kPlain;                     ///< set by editor.compat; it has no key of its own
};

/// Parses `contexts:` of an editor: a list of templates, or {generate, length}. Adds a problem for a template without
/// exactly one "{}", and for a list without a plain "{}".
ContextOptions parse_context_options(ConfigSection& editor);

/// Returns the text before generated templates.
std::string template_opening(const Tokenizer& tokenizer, ContextOptions::Opening opening);

/// Returns the context in which the prompt is a user's message, as `options` says; nullopt: none. `model`: the
/// checkpoint's folder. Throws: ConfigError, TokenizerError (ChatTemplate).
std::optional<std::string> chat_context(const ContextOptions& options, const std::filesystem::path& model,
                                        const Tokenizer& tokenizer);

/// Collective. Returns the templates to use, "{}" first; every rank gets root's. Generates with top-5 sampling on the
/// model as it is.
std::vector<std::string> make_contexts(const CausalLM& model, const ModelFiles& files, const ContextOptions& options,
                                       uint64_t seed, Communicator& communicator);

// How targets end and which code's tokenisation they follow: the choice of the job, and its meaning for a model.

/// What is appended to targets.
enum class TargetEnd {
  kNone,  ///< nothing more
  kEos,   ///< the tokenizer's end token
  kAuto   ///< the end token if generation ends at it, else nothing
};

/// How a method turns targets into token ids, for any model.
struct TargetRule {
  Compat compat = Compat::kNone;  ///< the code whose tokenisation is followed
  TargetEnd end = TargetEnd::kNone;
  int64_t chunk_tokens = 0;            ///< as TargetForm::chunk_tokens
  std::vector<std::string> kept = {};  ///< as TargetForm::kept
};

/// Returns the rule for a model. Throws: ConfigError for kEos if the tokenizer has no end token or generation does not
/// end at it.
TargetForm target_form(const TargetRule& rule, const ModelConfig& config, const Tokenizer& tokenizer);

}  // namespace lancet
