#include "openai_server.h"

#include <algorithm>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr const char* kModels = "/v1/models";
constexpr const char* kCompletions = "/v1/completions";
constexpr int kBadRequest = 400;
/// How far a log-probability may be above 0, or above the likeliest one, because of bf16.
constexpr double kRounding = 1e-3;

bool is_adapter_entry(const ServerJson& model) {
  const auto parent = model.find("parent");
  return parent != model.end() && parent->is_string() && !parent->get<std::string>().empty();
}

/// Returns `choices[0]` of a completion; null if there is none.
const ServerJson* first_choice(const ServerJson& answer) {
  if (!answer.is_object()) return nullptr;
  const auto choices = answer.find("choices");
  if (choices == answer.end() || !choices->is_array() || choices->empty() || !(*choices)[0].is_object()) return nullptr;
  return &(*choices)[0];
}

const ServerJson* list_in(const ServerJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? &*found : nullptr;
}

/// Returns the largest of the log-probabilities at a position; nullopt if there is none, or one is not valid.
std::optional<double> likeliest_of(const ServerJson& told) {
  std::optional<double> likeliest;
  if (!told.is_object()) return std::nullopt;
  for (const ServerJson& each : told) {
    if (!each.is_number() || each.get<double>() > kRounding) return std::nullopt;
    likeliest = std::max(likeliest.value_or(each.get<double>()), each.get<double>());
  }
  return likeliest;
}

/// Returns the number of tokens that the server found in the prompt; 0 if it does not say it.
size_t prompt_tokens(const ServerJson& answer) {
  const auto usage = answer.find("usage");
  if (usage == answer.end() || !usage->is_object()) return 0;
  const auto tokens = usage->find("prompt_tokens");
  return tokens != usage->end() && tokens->is_number_unsigned() ? tokens->get<size_t>() : 0;
}

}  // namespace

std::vector<ServerJson> OpenAiServer::models() const {
  const ServerJson answer = client_.get(kModels);
  const ServerJson* data = answer.is_object() ? list_in(answer, "data") : nullptr;
  if (data == nullptr) throw client_.wrong_answer(kModels, "a list of models");
  std::vector<ServerJson> models;
  for (const ServerJson& model : *data) {
    if (text_in(model, "id").empty()) throw client_.wrong_answer(kModels, "models with an id");
    models.push_back(model);
  }
  return models;
}

const std::string& OpenAiServer::base_model() {
  if (base_model_.empty()) base_model_ = OpenAiServer::facts().model;
  return base_model_;
}

std::vector<LoadedAdapter> OpenAiServer::adapters_among_models() const {
  std::vector<LoadedAdapter> adapters;
  for (const ServerJson& model : models())
    if (is_adapter_entry(model)) adapters.push_back({text_in(model, "id"), text_in(model, "root")});
  return adapters;
}

ServerFacts OpenAiServer::facts() {
  for (const ServerJson& model : models())
    if (!is_adapter_entry(model)) return {.model = text_in(model, "id"), .model_path = text_in(model, "root")};
  throw client_.wrong_answer(kModels, "a model that is no adapter");
}

void OpenAiServer::name_adapter(ServerJson& request, const CompletionQuestion& question) const {
  request["model"] = question.adapter;
}

std::string OpenAiServer::complete(const CompletionQuestion& question) {
  ServerJson request = {{"model", base_model()}, {"max_tokens", question.max_tokens}, {"temperature", 0}};
  request["prompt"] = question.text.empty() ? ServerJson(question.ids) : ServerJson(question.text);
  if (!question.end_ids.empty()) request["stop_token_ids"] = question.end_ids;
  add_own(request);
  if (!question.adapter.empty()) name_adapter(request, question);
  const ServerJson answer = client_.post(kCompletions, request);
  const ServerJson* choice = first_choice(answer);
  if (choice == nullptr || !choice->contains("text") || !(*choice)["text"].is_string())
    throw client_.wrong_answer(kCompletions, "a completion with its text");
  return text_in(*choice, "text");
}

/// Asks for one more token, because some servers return nothing for zero tokens. It is the last one, and is removed.
TokenScores OpenAiServer::score(const CompletionQuestion& question, size_t last) {
  const std::vector<TokenId>& ids = question.ids;
  ServerJson request = {{"model", base_model()}, {"prompt", ids}, {"max_tokens", 1},
                        {"temperature", 0},      {"echo", true},  {"logprobs", 1}};
  add_own(request);
  if (!question.adapter.empty()) name_adapter(request, question);
  const ServerJson answer = client_.post(kCompletions, request);
  const ServerJson* choice = first_choice(answer);
  const auto none = [&](const std::string& why) {
    return ServerRefusal(cat(client_.access().address.text(), ": ", kCompletions, ": ", why), kBadRequest);
  };
  if (choice == nullptr || !choice->contains("logprobs") || !(*choice)["logprobs"].is_object())
    throw none("no log-probabilities of a prompt");
  const ServerJson* of_tokens = list_in((*choice)["logprobs"], "token_logprobs");
  const ServerJson* likeliest = list_in((*choice)["logprobs"], "top_logprobs");
  const size_t asked = prompt_tokens(answer);
  if (of_tokens == nullptr || likeliest == nullptr || of_tokens->size() < ids.size() ||
      likeliest->size() != of_tokens->size() || (asked != 0 && asked != ids.size()))
    throw none(
        cat("no log-probabilities of the ", ids.size(), " tokens that were asked about, each with the likeliest"));
  TokenScores scores;
  for (size_t i = ids.size() - last; i < ids.size(); ++i) {
    const ServerJson& own = (*of_tokens)[i];
    if (!own.is_number() || own.get<double>() > kRounding)
      throw none(cat("expected a log-probability of each token of a prompt, at most 0, got ", excerpt(own.dump(), 40)));
    const std::optional<double> best = likeliest_of((*likeliest)[i]);
    if (!best || own.get<double>() > *best + kRounding)
      throw none(
          cat("expected with each token of a prompt the likeliest one's log-probability, at most 0 and at least ",
              "the token's own ", own.dump(), ", got ", excerpt((*likeliest)[i].dump(), 80)));
    scores.log_probabilities.push_back(std::min(own.get<double>(), 0.0));
    scores.is_likeliest.push_back(own.get<double>() >= *best);
  }
  return scores;
}

}  // namespace lancet
