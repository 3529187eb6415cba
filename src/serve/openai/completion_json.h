// Writes answers in the form of OpenAI's API.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "completion_order.h"
#include "lancet/eval/token_scores.h"

namespace lancet {

/// A token of an answer or of a prompt, with its score. The first token of all has no score.
struct ScoredToken {
  std::string text = {};
  std::optional<TokenScore> score = {};
  std::vector<std::string> likely_texts = {};  ///< texts of the tokens in score->likeliest
};

struct CompletionChoice {
  int64_t index = 0;
  std::string text = {};
  std::string finish_reason = {};  ///< "stop", "length"; empty: the answer is unfinished
  std::vector<ScoredToken> scored = {};
};

struct CompletionUsage {
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;
};

/// Writes the pieces of one answer, which all have its id, model and time.
class CompletionWriter {
 public:
  /// `order` and `model` must outlive this object. `state`: the edits in the model that answered, "edits-3".
  CompletionWriter(const CompletionOrder& order, const ServedModel& model, std::string state);

  /// Returns the whole answer.
  std::string whole(const std::vector<CompletionChoice>& choices, const CompletionUsage& usage) const;
  /// Returns the first piece of a chat, which has no text but says who speaks.
  std::string opening(int64_t index) const;
  std::string piece(const CompletionChoice& choice) const;
  std::string usage_piece(const CompletionUsage& usage) const;

 private:
  using Json = nlohmann::ordered_json;

  Json head(const char* object) const;
  Json scores(const CompletionChoice& choice) const;
  bool is_chat() const { return order_.kind == CompletionKind::kChat; }
  const char* piece_object() const { return is_chat() ? "chat.completion.chunk" : "text_completion"; }

  const CompletionOrder& order_;
  const ServedModel& model_;
  const std::string id_, state_;
  const int64_t created_;
};

/// Returns {"object": "list", "data": [...]} with the model, or the model's entry alone.
std::string models_text(const ServedModel& model);
std::string model_text(const ServedModel& model);

int64_t seconds_since_1970();

}  // namespace lancet
