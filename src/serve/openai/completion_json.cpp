#include "completion_json.h"

#include <chrono>
#include <utility>

#include "lancet/core/strings.h"
#include "lancet/http/access_token.h"

namespace lancet {
namespace {

using ApiJson = nlohmann::ordered_json;

std::string dumped(const ApiJson& json) { return json.dump(-1, ' ', false, ApiJson::error_handler_t::replace); }

ApiJson usage_json(const CompletionUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.new_tokens},
          {"total_tokens", usage.prompt_tokens + usage.new_tokens}};
}

ApiJson bytes_json(const std::string& text) {
  ApiJson bytes = ApiJson::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

ApiJson entry_json(const ServedModel& model) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "lancet"},
          {"root", model.folder},
          {"parent", nullptr},
          {"max_model_len", model.max_positions}};
}

/// Returns the log-probabilities of completions as parallel lists. Of tokens with the same text, only the likeliest is
/// listed.
ApiJson completion_scores(const std::vector<ScoredToken>& tokens, bool has_likely) {
  ApiJson texts = ApiJson::array(), own = ApiJson::array(), likely = ApiJson::array(), offsets = ApiJson::array();
  size_t offset = 0;
  for (const ScoredToken& token : tokens) {
    texts.push_back(token.text);
    offsets.push_back(offset);
    offset += token.text.size();
    if (!token.score) {
      own.push_back(nullptr);
      likely.push_back(nullptr);
      continue;
    }
    own.push_back(token.score->own.log_probability);
    ApiJson row = ApiJson::object();
    row[token.text] = token.score->own.log_probability;
    for (size_t i = token.likely_texts.size(); i-- > 0;)
      row[token.likely_texts[i]] = token.score->likeliest[i].log_probability;
    likely.push_back(std::move(row));
  }
  return {{"tokens", texts},
          {"token_logprobs", own},
          {"top_logprobs", has_likely ? likely : ApiJson()},
          {"text_offset", offsets}};
}

ApiJson chat_scores(const std::vector<ScoredToken>& tokens) {
  ApiJson rows = ApiJson::array();
  for (const ScoredToken& token : tokens) {
    ApiJson likely = ApiJson::array();
    for (size_t i = 0; i < token.likely_texts.size(); ++i)
      likely.push_back({{"token", token.likely_texts[i]},
                        {"logprob", token.score->likeliest[i].log_probability},
                        {"bytes", bytes_json(token.likely_texts[i])}});
    rows.push_back({{"token", token.text},
                    {"logprob", token.score->own.log_probability},
                    {"bytes", bytes_json(token.text)},
                    {"top_logprobs", likely}});
  }
  return {{"content", rows}, {"refusal", nullptr}};
}

ApiJson reason_json(const std::string& reason) { return reason.empty() ? ApiJson() : ApiJson(reason); }

/// Returns the type that OpenAI's API has for errors with this status.
const char* error_type(int status) {
  if (status == 401) return "authentication_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

}  // namespace

int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string api_error_text(const ApiError& error) {
  return dumped({{"error",
                  {{"message", error.message},
                   {"type", error_type(error.status)},
                   {"param", error.parameter.empty() ? ApiJson() : ApiJson(error.parameter)},
                   {"code", error.code.empty() ? ApiJson() : ApiJson(error.code)}}}});
}

HttpReply api_error_reply(const ApiError& error) {
  return {.status = error.status, .body = api_error_text(error) + "\n"};
}

CompletionWriter::CompletionWriter(const CompletionOrder& order, const ServedModel& model, std::string state)
    : order_(order),
      model_(model),
      id_(cat(order.kind == CompletionKind::kChat ? "chatcmpl-" : "cmpl-", make_access_token())),
      state_(std::move(state)),
      created_(seconds_since_1970()) {}

CompletionWriter::Json CompletionWriter::head(const char* object) const {
  return {
      {"id", id_}, {"object", object}, {"created", created_}, {"model", model_.name}, {"system_fingerprint", state_}};
}

CompletionWriter::Json CompletionWriter::scores(const CompletionChoice& choice) const {
  if (!order_.n_likely || choice.scored.empty()) return nullptr;
  return is_chat() ? chat_scores(choice.scored) : completion_scores(choice.scored, *order_.n_likely > 0);
}

std::string CompletionWriter::whole(const std::vector<CompletionChoice>& choices, const CompletionUsage& usage) const {
  Json json = head(is_chat() ? "chat.completion" : "text_completion");
  Json& list = json["choices"] = Json::array();
  for (const CompletionChoice& choice : choices) {
    Json one{{"index", choice.index}};
    if (is_chat())
      one["message"] = {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
    else
      one["text"] = choice.text;
    one["logprobs"] = scores(choice);
    one["finish_reason"] = reason_json(choice.finish_reason);
    list.push_back(std::move(one));
  }
  json["usage"] = usage_json(usage);
  return dumped(json);
}

std::string CompletionWriter::opening(int64_t index) const {
  Json json = head(piece_object());
  json["choices"] = Json::array({{{"index", index},
                                  {"delta", {{"role", "assistant"}, {"content", ""}}},
                                  {"logprobs", nullptr},
                                  {"finish_reason", nullptr}}});
  return dumped(json);
}

std::string CompletionWriter::piece(const CompletionChoice& choice) const {
  Json json = head(piece_object());
  Json one{{"index", choice.index}};
  if (is_chat())
    one["delta"] = choice.text.empty() ? Json::object() : Json{{"content", choice.text}};
  else
    one["text"] = choice.text;
  one["logprobs"] = scores(choice);
  one["finish_reason"] = reason_json(choice.finish_reason);
  json["choices"] = Json::array({std::move(one)});
  return dumped(json);
}

std::string CompletionWriter::usage_piece(const CompletionUsage& usage) const {
  Json json = head(piece_object());
  json["choices"] = Json::array();
  json["usage"] = usage_json(usage);
  return dumped(json);
}

std::string models_text(const ServedModel& model) {
  return dumped({{"object", "list"}, {"data", ApiJson::array({entry_json(model)})}});
}

std::string model_text(const ServedModel& model) { return dumped(entry_json(model)); }

}  // namespace lancet
