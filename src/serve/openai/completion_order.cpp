#include "completion_order.h"

#include <algorithm>
#include <random>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/spec/generate_spec.h"
#include "order_fields.h"

namespace lancet {
namespace {

constexpr int64_t kMostRows = 128;
constexpr int64_t kMostStops = 4;
constexpr int64_t kMostLikely = 20;
constexpr int64_t kLargestSeed = int64_t{1} << 53U;

std::vector<TokenId> ids_of(const std::string& text, const ServedModel& model) {
  try {
    return model.tokenizer->ids(text);
  } catch (const Error& error) {
    throw ApiProblem({.status = 400, .message = error.what(), .parameter = "prompt"});
  }
}

std::vector<TokenId> read_ids(const nlohmann::json& list, const std::string& key, const ServedModel& model) {
  std::vector<TokenId> ids;
  for (const nlohmann::json& id : list) {
    if (!id.is_number_integer() || id < 0 || id >= model.vocab_size)
      refuse_field(key, cat("token ids from 0 to ", model.vocab_size - 1));
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

/// Reads a text, a list of texts, token ids, or a list of lists of token ids.
std::vector<std::vector<TokenId>> read_prompts(OrderFields& fields, const ServedModel& model) {
  const nlohmann::json* prompt = fields.find("prompt");
  const auto refuse = [] { refuse_field("prompt", "a text, a list of texts, token ids, or a list of lists of them"); };
  if (prompt == nullptr) refuse();
  if (prompt->is_string()) return {ids_of(prompt->get<std::string>(), model)};
  if (!prompt->is_array() || prompt->empty()) refuse();
  if (prompt->front().is_number()) return {read_ids(*prompt, "prompt", model)};
  std::vector<std::vector<TokenId>> prompts;
  for (const nlohmann::json& one : *prompt) {
    if (!one.is_string() && !one.is_array()) refuse();
    prompts.push_back(one.is_string() ? ids_of(one.get<std::string>(), model) : read_ids(one, "prompt", model));
  }
  return prompts;
}

[[noreturn]] void refuse_message(size_t place, const std::string& expected) {
  refuse_field("messages", cat("message ", place + 1, " with ", expected));
}

/// Returns the text of a message: a text, or parts of the type "text".
std::string message_text(const nlohmann::json& message, size_t place) {
  const auto content = message.find("content");
  if (content != message.end() && content->is_string()) return content->get<std::string>();
  std::string text;
  if (content == message.end() || !content->is_array()) refuse_message(place, "a content, which is a text");
  for (const nlohmann::json& part : *content) {
    const bool is_text = part.is_object() && part.contains("type") && part["type"] == "text" && part.contains("text") &&
                         part["text"].is_string();
    if (!is_text) refuse_message(place, "parts of the type text alone: the model reads nothing else");
    text += part["text"].get<std::string>();
  }
  return text;
}

/// The roles that a conversation may have. The template decides what it does with each.
constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant"};

ChatMessage read_message(const nlohmann::json& message, size_t place) {
  if (!message.is_object()) refuse_message(place, "a role and a content, as an object");
  const auto role = message.find("role");
  if (role == message.end() || !role->is_string() ||
      std::ranges::find(kRoles, role->get<std::string>()) == std::end(kRoles))
    refuse_message(place, "the role system, developer, user or assistant: lancet serve calls no tools");
  // in answers that clients send back, other fields are empty: "refusal": null
  for (const auto& [key, value] : message.items())
    if (key != "role" && key != "content" && !value.is_null() && !(value.is_array() && value.empty()))
      refuse_message(place, cat("a role and a content alone: ", printable(excerpt(key, 60)), " would be left out"));
  return {role->get<std::string>(), message_text(message, place)};
}

std::vector<TokenId> read_messages(OrderFields& fields, const ServedModel& model) {
  if (!model.chat)
    throw ApiProblem({.status = 400,
                      .message = cat(model.why_no_chat, "; or start lancet serve with --chat-template"),
                      .parameter = "messages",
                      .code = "no_chat_template"});
  const nlohmann::json* given = fields.find("messages");
  if (given == nullptr || !given->is_array() || given->empty()) refuse_field("messages", "a list of messages");
  std::vector<ChatMessage> messages;
  for (const nlohmann::json& message : *given) messages.push_back(read_message(message, messages.size()));
  try {
    return model.chat->ids(*model.tokenizer, messages);
  } catch (const Error& error) {
    throw ApiProblem({.status = 400, .message = error.what(), .parameter = "messages"});
  }
}

std::vector<std::string> read_stops(OrderFields& fields) {
  const nlohmann::json* stop = fields.find("stop");
  std::vector<std::string> stops;
  if (stop == nullptr) return stops;
  const auto refuse = [] { refuse_field("stop", cat("a text, or up to ", kMostStops, " of them, none empty")); };
  if (stop->is_string()) {
    stops.push_back(stop->get<std::string>());
  } else if (stop->is_array() && stop->size() <= kMostStops) {
    for (const nlohmann::json& one : *stop) {
      if (!one.is_string()) refuse();
      stops.push_back(one.get<std::string>());
    }
  } else {
    refuse();
  }
  if (std::ranges::any_of(stops, &std::string::empty)) refuse();
  return stops;
}

uint64_t any_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32U) | device();
}

/// OpenAI's defaults: the model's own distribution, with other random numbers each time. Temperature 0 means greedy.
SamplingOptions read_sampling(OrderFields& fields) {
  SamplingOptions sampling{.temperature = fields.fraction("temperature", 0, 2).value_or(1),
                           .top_k = fields.number("top_k", -1, kLargestSeed).value_or(0),
                           .top_p = fields.fraction("top_p", 0, 1).value_or(1)};
  const std::optional<int64_t> seed = fields.number("seed", -kLargestSeed, kLargestSeed);
  sampling.seed = seed ? static_cast<uint64_t>(*seed) : any_seed();
  sampling.top_k = std::max<int64_t>(sampling.top_k, 0);                     // -1 means all, as in vLLM
  sampling.top_p = std::max(sampling.top_p, GenerateSpec::kTopP.range.min);  // 0 means the likeliest one
  if (sampling.temperature < GenerateSpec::kTemperature.range.min) sampling = {.seed = sampling.seed};
  return sampling;
}

void read_log_probabilities(OrderFields& fields, CompletionOrder& order) {
  if (order.kind == CompletionKind::kText) {
    order.n_likely = fields.number("logprobs", 0, kMostLikely);
  } else {
    const bool are_wanted = fields.choice("logprobs").value_or(false);
    const std::optional<int64_t> top = fields.number("top_logprobs", 0, kMostLikely);
    if (top && !are_wanted) refuse_field("top_logprobs", "logprobs: true beside it");
    if (are_wanted) order.n_likely = top.value_or(0);
  }
  order.names_tokens_by_id = fields.choice("return_tokens_as_token_ids").value_or(false);
}

void check_model(OrderFields& fields, const ServedModel& model) {
  const std::optional<std::string> name = fields.text("model");
  if (name && *name != model.name)
    throw ApiProblem(
        {.status = 404,
         .message = cat("The model '", excerpt(*name, 80), "' does not exist: expected '", model.name, "'"),
         .parameter = "model",
         .code = "model_not_found"});
}

/// Reads the largest number of new tokens. For a chat that does not say it, all remaining positions.
void read_length(OrderFields& fields, const ServedModel& model, CompletionOrder& order) {
  const bool is_chat = order.kind == CompletionKind::kChat;
  const int64_t least = order.echoes ? 0 : 1;
  std::optional<int64_t> tokens = fields.number("max_tokens", least, kMostNewTokens);
  if (is_chat)
    if (const std::optional<int64_t> newer = fields.number("max_completion_tokens", 1, kMostNewTokens)) tokens = newer;
  size_t longest = 0;
  for (const std::vector<TokenId>& prompt : order.prompts) {
    longest = std::max(longest, prompt.size());
    if (prompt.empty())
      refuse_field(is_chat ? "messages" : "prompt", "some text, because this tokenizer puts no BOS before it");
  }
  const int64_t room = model.max_positions - static_cast<int64_t>(longest);
  order.tokens = tokens.value_or(is_chat ? std::clamp<int64_t>(room, 1, kMostNewTokens) : order.tokens);
  if (order.tokens > room)
    throw ApiProblem(
        {.status = 400,
         .message = cat("This model's maximum context length is ", model.max_positions,
                        " tokens: expected a shorter prompt or fewer new tokens, got ", longest, " and ", order.tokens),
         .parameter = is_chat ? "messages" : "prompt",
         .code = "context_length_exceeded"});
}

}  // namespace

CompletionOrder parse_completion(CompletionKind kind, std::string_view body, const ServedModel& model) {
  OrderFields fields(body);
  CompletionOrder order{.kind = kind};
  check_model(fields, model);
  if (kind == CompletionKind::kChat) {
    order.prompts = {read_messages(fields, model)};
  } else {
    order.prompts = read_prompts(fields, model);
    order.echoes = fields.choice("echo").value_or(false);
  }
  read_length(fields, model, order);
  order.samples = fields.number("n", 1, kMostRows).value_or(1);
  if (static_cast<int64_t>(order.prompts.size()) * order.samples > kMostRows)
    refuse_field("n", cat("at most ", kMostRows, " answers in all"));
  order.sampling = read_sampling(fields);
  order.stops = read_stops(fields);
  order.end_ids = model.end_ids;
  if (kind == CompletionKind::kChat)
    for (const TokenId id : model.chat->end_ids(*model.tokenizer)) order.end_ids.push_back(id);
  if (const nlohmann::json* more = fields.find("stop_token_ids")) {
    if (!more->is_array()) refuse_field("stop_token_ids", "a list of token ids");
    for (const TokenId id : read_ids(*more, "stop_token_ids", model)) order.end_ids.push_back(id);
  }
  order.is_streamed = fields.choice("stream").value_or(false);
  if (const nlohmann::json* options = fields.find("stream_options")) {
    if (!options->is_object() || !options->value("include_usage", nlohmann::json(false)).is_boolean())
      refuse_field("stream_options", "an object with include_usage");
    order.streams_usage = options->value("include_usage", false);
  }
  read_log_probabilities(fields, order);
  fields.refuse_others();
  return order;
}

}  // namespace lancet
