// What `lancet generate` asks: models with their tokenizers and templates, which continue prompts.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lancet/models/generate.h"
#include "lancet/plan/model_session.h"
#include "lancet/text/chat_template.h"

namespace lancet::cli {

/// How prompts become token ids.
struct ChatChoice {
  bool from_model = false;  ///< the checkpoint's own template
  std::string by_hand;      ///< a pattern; empty: none
};

/// How prompts are continued.
struct GenerateSettings {
  SamplingOptions sampling;
  int64_t tokens = 40;  ///< new ones at most
  int64_t samples = 1;  ///< continuations of each prompt
};

struct Answer {
  std::string text;
  std::vector<TokenId> ids;  ///< without the prompt
};

class AskedModel {
 public:
  /// Reads no weights. Throws: CheckpointError, TokenizerError, ConfigError.
  AskedModel(std::string folder, const ChatChoice& chat);

  /// Throws: ConfigError for a prompt without tokens, or one that leaves no room for `tokens` more.
  std::vector<TokenId> prompt_ids(const std::string& prompt, int64_t tokens) const;

  /// Throws: PlacementError when there is no memory for the model and for `size`.
  void load(const RunOptions& run, const GenerationSize& size);

  /// All samples of the first prompt, then those of the next. `first_prompt`: the number of the first one among all,
  /// by which random numbers go. `on_text` is told of new text, where there is one row.
  std::vector<Answer> answer(const std::vector<std::string>& prompts, int64_t first_prompt,
                             const GenerateSettings& settings,
                             const std::function<void(const std::string&)>& on_text = {}) const;

  const std::string& folder() const { return folder_; }
  int64_t max_positions() const { return files_.config.max_positions; }

 private:
  /// What `added` says behind a prompt.
  std::string text_behind(const std::vector<TokenId>& prompt, const std::vector<TokenId>& added) const;

  std::string folder_;
  ModelFiles files_;
  std::optional<ChatTemplate> chat_;
  std::optional<CausalLM> model_;
};

}  // namespace lancet::cli
