// Continues prompts with a model, as text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/config_tree.h"
#include "lancet/models/generate.h"
#include "lancet/models/model_files.h"
#include "lancet/session/asked_weights.h"
#include "lancet/spec/generate_spec.h"
#include "lancet/text/chat_template.h"

namespace lancet {

/// How prompts are continued.
struct GenerateTextOptions {
  SamplingOptions sampling = {};
  int64_t tokens = *GenerateSpec::kTokens.fallback;    ///< most new tokens
  int64_t samples = *GenerateSpec::kSamples.fallback;  ///< number of continuations of each prompt
  int64_t first_prompt = 0;  ///< index of the first prompt among all prompts, on which random numbers depend
};

/// Returns how the user wrote a key: "--top-k".
using Spelling = std::function<std::string(std::string_view key)>;

/// Reads the given options of GenerateSpec. Throws: ConfigError, also for options that would have no effect.
GenerateTextOptions parse_generate_options(const ConfigTree& given, const Spelling& spelt);

struct Answer {
  std::string text;
  std::vector<TokenId> ids;  ///< tokens of the text, without the prompt
};

class TextGenerator {
 public:
  /// `files` must outlive this. `chat`: the template that wraps prompts.
  explicit TextGenerator(const ModelFiles& files, std::optional<ChatTemplate> chat = {})
      : files_(files), chat_(std::move(chat)) {}

  /// Returns the ids of a prompt. Throws: ConfigError for a prompt without tokens, or one that leaves no room for
  /// `tokens` more.
  std::vector<TokenId> prompt_ids(const std::string& prompt, int64_t tokens) const;

  /// Continues the prompts. Returns all samples of the first prompt, then those of the next. `model`: loaded from the
  /// files. `on_text` receives new text if there is only one row. Throws: as prompt_ids().
  std::vector<Answer> answer(const CausalLM& model, std::span<const std::string> prompts,
                             const GenerateTextOptions& options,
                             const std::function<void(const std::string&)>& on_text = {}) const;

  /// Continues the prompt with each of these weights, in turns of one token. Each result equals answer() with these
  /// weights alone. Throws: as prompt_ids(), and what `turns.put` throws.
  void answer_in_turns(const CausalLM& model, const WeightsInTurns& turns, const std::string& prompt,
                       const GenerateTextOptions& options,
                       const std::function<void(AskedWeights, const std::string&)>& on_text) const;

 private:
  GenerateOptions generation_of(const GenerateTextOptions& options) const;

  const ModelFiles& files_;
  std::optional<ChatTemplate> chat_;
};

}  // namespace lancet
