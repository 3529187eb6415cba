// What a client of OpenAI's API asks for, read strictly: a field that lancet does not honour and that would change the
// answer is refused by name.
// Source: OpenAI's API reference, "Completions" and "Chat completions"; vllm-project/vllm,
// vllm/entrypoints/openai/completion/protocol.py (top_k, stop_token_ids, return_tokens_as_token_ids).
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

/// The model that answers, as far as requests are about it.
struct ServedModel {
  std::string name = {};    ///< name that requests have
  std::string folder = {};  ///< place that it was loaded from
  int64_t created = 0;      ///< seconds since 1970 at which it was loaded
  const Tokenizer* tokenizer = nullptr;
  int64_t vocab_size = 0;
  int64_t max_positions = 0;
  std::vector<TokenId> end_ids = {};
  std::optional<ChatTemplate> chat = {};
  std::string why_no_chat = {};  ///< what is wrong with the checkpoint's template, where `chat` is empty
};

enum class CompletionKind { kText, kChat };

struct CompletionOrder {
  CompletionKind kind = CompletionKind::kText;
  std::vector<std::vector<TokenId>> prompts = {};
  int64_t samples = 1;  ///< answers to each prompt
  int64_t tokens = 16;  ///< new ones of each answer, at most
  SamplingOptions sampling = {};
  std::vector<std::string> stops = {};  ///< texts that an answer ends before
  std::vector<TokenId> end_ids = {};    ///< tokens that it ends before
  bool is_streamed = false;
  bool streams_usage = false;
  bool echoes = false;                   ///< whether the prompt stands before its answers
  std::optional<int64_t> n_likely = {};  ///< likeliest tokens that come with each log-probability; empty: none come
  bool names_tokens_by_id = false;       ///< "token_id:17" in the place of a token's text
};

inline constexpr int64_t kMostNewTokens = 2048;

/// Throws: ApiProblem.
CompletionOrder parse_completion(CompletionKind kind, std::string_view body, const ServedModel& model);

}  // namespace lancet
