// The models of `lancet generate`, with their tokenizers and templates.
#pragma once

#include <optional>
#include <string>

#include "lancet/plan/model_session.h"
#include "lancet/session/generate.h"

namespace lancet::cli {

/// How prompts become token ids.
struct ChatChoice {
  bool from_model = false;  ///< the checkpoint's own template
  std::string by_hand;      ///< a template with {}; empty: none
};

class GenerateModel {
 public:
  /// Reads no weights. Throws: CheckpointError, TokenizerError, ConfigError.
  GenerateModel(std::string folder, const ChatChoice& chat);

  GenerateModel(const GenerateModel&) = delete;
  GenerateModel& operator=(const GenerateModel&) = delete;

  /// Throws: PlacementError if memory does not suffice for the model and for `size`.
  void load(const RunOptions& run, const GenerationSize& size);

  const CausalLM& model() const { return *model_; }
  const TextGenerator& generator() const { return generator_; }
  const std::string& folder() const { return folder_; }
  int64_t max_positions() const { return files_.config.max_positions; }

 private:
  std::string folder_;
  ModelFiles files_;
  TextGenerator generator_;
  std::optional<CausalLM> model_;
};

}  // namespace lancet::cli
