// What a client of OpenAI's API asks for. It is read strictly: a field that lancet does not support, and that would
// change the answer, is refused by name. Source: OpenAI's API reference, "Completions" and "Chat completions";
// vllm-project/vllm, vllm/entrypoints/openai/completion/protocol.py (top_k, stop_token_ids,
// return_tokens_as_token_ids).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api_problem.h"
#include "lancet/models/generate.h"
#include "lancet/text/chat_template.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

/// What requests need to know about the model that answers.
struct ServedModel {
  std::string name = {};    ///< name of the model in requests
  std::string folder = {};  ///< path from which it was loaded
  int64_t created = 0;      ///< when it was loaded, in seconds since 1970
  const Tokenizer* tokenizer = nullptr;
  int64_t vocab_size = 0;
  int64_t max_positions = 0;
  std::vector<TokenId> end_ids = {};
  std::optional<ChatTemplate> chat = {};
  std::string why_no_chat = {};  ///< what is wrong with the checkpoint's template, if `chat` is empty
};

enum class CompletionKind { kText, kChat };

struct CompletionOrder {
  CompletionKind kind = CompletionKind::kText;
  std::vector<std::vector<TokenId>> prompts = {};
  int64_t samples = 1;  ///< number of answers to each prompt
  int64_t tokens = 16;  ///< largest number of new tokens in each answer
  SamplingOptions sampling = {};
  std::vector<std::string> stops = {};  ///< an answer ends before one of these texts
  std::vector<TokenId> end_ids = {};    ///< an answer ends before one of these tokens
  bool is_streamed = false;
  bool streams_usage = false;
  bool echoes = false;  ///< whether each answer begins with its prompt
  /// How many of the likeliest tokens come with each log-probability; nullopt: there are no log-probabilities.
  std::optional<int64_t> n_likely = {};
  bool names_tokens_by_id = false;  ///< gives "token_id:17" instead of a token's text
};

inline constexpr int64_t kMostNewTokens = 2048;

/// Throws: ApiProblem.
CompletionOrder parse_completion(CompletionKind kind, std::string_view body, const ServedModel& model);

}  // namespace lancet
