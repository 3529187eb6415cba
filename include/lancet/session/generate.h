// Prompts that a model continues, as texts.
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
  int64_t tokens = *GenerateSpec::kTokens.fallback;    ///< new ones at most
  int64_t samples = *GenerateSpec::kSamples.fallback;  ///< continuations of each prompt
  int64_t first_prompt = 0;  ///< the number of the first one among all, by which random numbers go
};

/// How a key is written where it was given: "--top-k".
using Spelling = std::function<std::string(std::string_view key)>;

/// Reads what was given of GenerateSpec. Throws: ConfigError, also for what would change nothing.
GenerateTextOptions parse_generate_options(const ConfigTree& given, const Spelling& spelt);

struct Answer {
  std::string text;
  std::vector<TokenId> ids;  ///< tokens of the text, without the prompt
};

class TextGenerator {
 public:
  /// `files` outlives this. `chat`: what prompts are wrapped in.
  explicit TextGenerator(const ModelFiles& files, std::optional<ChatTemplate> chat = {})
      : files_(files), chat_(std::move(chat)) {}

  /// Throws: ConfigError for a prompt without tokens, or one that leaves no room for `tokens` more.
  std::vector<TokenId> prompt_ids(const std::string& prompt, int64_t tokens) const;

  /// `model`: loaded from the files. All samples of the first prompt, then those of the next. `on_text` is told of new
  /// text, where there is one row. Throws: as prompt_ids().
  std::vector<Answer> answer(const CausalLM& model, std::span<const std::string> prompts,
                             const GenerateTextOptions& options,
                             const std::function<void(const std::string&)>& on_text = {}) const;

  /// The prompt by each of these weights, a token by each in turn: the answers that answer() gives by them alone.
  /// Throws: as prompt_ids(), and what `turns.put` throws.
  void answer_in_turns(const CausalLM& model, const WeightsInTurns& turns, const std::string& prompt,
                       const GenerateTextOptions& options,
                       const std::function<void(AskedWeights, const std::string&)>& on_text) const;

 private:
  GenerateOptions generation_of(const GenerateTextOptions& options) const;

  const ModelFiles& files_;
  std::optional<ChatTemplate> chat_;
};

}  // namespace lancet
