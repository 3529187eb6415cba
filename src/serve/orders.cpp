#include "orders.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/http/server_token.h"
#include "last_report.h"

namespace lancet {
namespace {

constexpr int64_t kLongestAnswer = 2048;
constexpr size_t kLongestName = 80;

/// Returns the body as an object that has only these keys.
nlohmann::json object_of(const HttpRequest& request, std::initializer_list<std::string_view> keys) {
  nlohmann::json json;
  try {
    json = parse_strict_json(request.body);
  } catch (const JsonProblem& problem) {
    throw ConfigError(problem.what());
  }
  if (!json.is_object()) throw ConfigError("expected a JSON object");
  for (const auto& [key, unread] : json.items())
    if (std::ranges::find(keys, std::string_view(key)) == keys.end())
      throw ConfigError(cat("'", printable(key), "': no such key"));
  return json;
}

std::string text_at(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) throw ConfigError(cat(key, ": expected a text"));
  return found->get<std::string>();
}

/// Reads text that is passed to another program or to the system, which would cut it at a NUL or a line end.
std::string line_at(const nlohmann::json& json, const char* key) {
  std::string text = text_at(json, key);
  if (std::ranges::any_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; }))
    throw ConfigError(cat(key, ": expected a line of text, got a control character in it"));
  return text;
}

/// Returns the other server's token; empty if there is none.
std::string token_at(const nlohmann::json& json) {
  std::string token = json.contains("token") ? text_at(json, "token") : "";
  return token.empty() ? token : checked_token(std::move(token), "token");
}

int64_t number_at(const nlohmann::json& json, const char* key, int64_t least, int64_t most) {
  const auto found = json.find(key);
  if (found != json.end() && found->is_number_integer() && *found >= least && *found <= most)
    return found->get<int64_t>();
  throw ConfigError(cat(key, ": expected a whole number from ", least, " to ", most));
}

/// Returns a plain file name that is valid on every system, does not lead to another folder, and is not hidden.
std::string folder_name(const std::string& name) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  const bool is_good = !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, is_plain) &&
                       name.front() != '.' && name.front() != '-' && name.back() != '.';
  if (!is_good)
    throw ConfigError(cat("name '", printable(excerpt(name, kLongestName)), "': expected up to ", kLongestName,
                          " letters, digits, '-', '_' and '.', with a letter or a digit first"));
  if (name.starts_with(kEditsState) || name == kLastReportFile)
    throw ConfigError(cat("name '", name, "': the edits themselves are kept there: another name"));
  return name;
}

ExportKind export_kind(const std::string& kind) {
  if (kind == "checkpoint") return ExportKind::kCheckpoint;
  if (kind == "peft") return ExportKind::kPeft;
  if (kind == "gguf") return ExportKind::kGguf;
  throw ConfigError(cat("kind '", printable(kind), "': expected checkpoint, peft or gguf"));
}

constexpr int64_t kAnyNumber = int64_t{1} << 53U;

std::vector<AskedWeights> asked_weights(const std::string& name) {
  if (name == "both") return {AskedWeights::kUnedited, AskedWeights::kEdited};
  for (const AskedWeights weights : {AskedWeights::kEdited, AskedWeights::kUnedited})
    if (name == weights_name(weights)) return {weights};
  throw ConfigError(cat("weights '", printable(name), "': expected edited, unedited or both"));
}

ConfigTree number_tree(const nlohmann::json& json, const char* key) {
  const nlohmann::json& number = json.at(key);
  if (number.is_number_integer()) return ConfigTree::number(number.get<int64_t>());
  if (number.is_number()) return ConfigTree::number(number.get<double>());
  throw ConfigError(cat(key, ": expected a number"));
}

}  // namespace

AskOrder parse_ask(const HttpRequest& request) {
  const nlohmann::json json =
      object_of(request, {"prompt", "tokens", "temperature", "top_k", "top_p", "seed", "weights", "chat"});
  ConfigTree sampling = ConfigTree::map();
  for (const char* key : {"temperature", "top_k", "top_p", "seed"})
    if (json.contains(key)) sampling.set(key, number_tree(json, key));
  AskOrder order{.prompt = text_at(json, "prompt"),
                 .options = parse_generate_options(sampling, [](std::string_view key) { return std::string(key); })};
  order.options.tokens = number_at(json, "tokens", 1, kLongestAnswer);
  if (json.contains("weights")) order.weights = asked_weights(text_at(json, "weights"));
  if (json.contains("chat")) {
    if (!json.at("chat").is_boolean()) throw ConfigError("chat: expected true or false");
    order.is_chat = json.at("chat").get<bool>();
  }
  return order;
}

EditCommand parse_edit(const HttpRequest& request, const SentFiles& files) {
  const nlohmann::json json = object_of(request, {"facts", "file", "method"});
  if (json.contains("facts") == json.contains("file")) throw ConfigError("expected facts, or a file of them");
  EditCommand order;
  order.given = json.contains("file") ? files.find(number_at(json, "file", 1, kAnyNumber)).given
                                      : typed_requests(json.at("facts"));
  if (json.contains("method")) order.method = text_at(json, "method");
  return order;
}

void parse_measure(const HttpRequest& request) { object_of(request, {}); }

UndoOrder parse_undo(const HttpRequest& request) {
  const nlohmann::json json = object_of(request, {"ids", "edits_version"});
  UndoOrder order{.edits_version = number_at(json, "edits_version", 0, kAnyNumber)};
  if (!json.contains("ids")) return order;
  if (!json.at("ids").is_array()) throw ConfigError("ids: expected a list of texts");
  for (const nlohmann::json& id : json.at("ids")) {
    if (!id.is_string()) throw ConfigError("ids: expected a list of texts");
    order.ids.push_back(id.get<std::string>());
  }
  if (order.ids.empty()) throw ConfigError("ids: expected at least one");
  return order;
}

ExportOrder parse_export(const HttpRequest& request) {
  const nlohmann::json json = object_of(request, {"kind", "name"});
  return {export_kind(text_at(json, "kind")), folder_name(text_at(json, "name"))};
}

PushJob parse_push(const HttpRequest& request) {
  const nlohmann::json json = object_of(
      request, {"to", "token", "server", "name", "instead_of", "accept", "asked", "adapter_dir", "server_path"});
  PushJob job;
  job.access.address = parse_http_address(text_at(json, "to"));
  const auto read = [&](const char* key, auto& into) {
    if (json.contains(key)) into = line_at(json, key);
  };
  job.access.token = token_at(json);
  read("server", job.server);
  read("name", job.name);
  read("instead_of", job.instead_of);
  read("adapter_dir", job.adapter_dir);
  read("server_path", job.server_path);
  if (json.contains("asked")) job.most_asked = number_at(json, "asked", 1, kAnyNumber);
  const nlohmann::json accept = json.value("accept", nlohmann::json::object());
  if (!accept.is_object()) throw ConfigError("accept: expected an object of metrics and shares");
  for (const auto& [metric, share] : accept.items()) {
    if (!share.is_number()) throw ConfigError(cat("accept: ", printable(metric), ": expected a share from 0 to 1"));
    add_push_threshold(job, metric, share.get<double>());
  }
  return job;
}

UnpushOrder parse_unpush(const HttpRequest& request) { return {token_at(object_of(request, {"token"}))}; }

int64_t parse_cancel(const HttpRequest& request) {
  return number_at(object_of(request, {"item"}), "item", 1, kAnyNumber);
}

}  // namespace lancet
