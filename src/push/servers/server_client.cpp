#include "server_client.h"

#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/http/server_token.h"

namespace lancet {
namespace {

constexpr int kOk = 200;
constexpr int kDeepestJson = 128;  ///< what servers send is nested deeper than files
constexpr size_t kLongestWords = 600;

/// Returns the server's error message, in the form of OpenAI, FastAPI or SGLang, or the text itself.
std::string words_of(const std::string& body) {
  try {
    const ServerJson json = parse_strict_json(body, kDeepestJson);
    if (!json.is_object()) return body;
    for (const char* key : {"error", "error_message", "message", "detail"}) {
      const auto found = json.find(key);
      if (found == json.end()) continue;
      if (found->is_string()) return found->get<std::string>();
      if (found->is_object() && found->contains("message") && (*found)["message"].is_string())
        return (*found)["message"].get<std::string>();
      return found->dump();
    }
  } catch (const JsonProblem&) {
    return body;
  }
  return body;
}

}  // namespace

std::string text_in(const ServerJson& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

ServerClient::ServerClient(ServerAccess access) : access_(std::move(access)) {
  if (!access_.token.empty()) access_.token = checked_token(std::move(access_.token), "the server's token");
}

std::string ServerClient::shown(std::string_view text) const {
  return printable(excerpt(without_token(std::string(text), access_.token), kLongestWords));
}

HttpAnswer ServerClient::ask(const std::string& method, const std::string& path, const std::string& body) const {
  HttpQuestion question{.method = method, .path = path, .body = body};
  add_token(question, access_.token);
  return ask_http(access_.address, question, {.whole = access_.timeout});
}

HttpAnswer ServerClient::ask_for(const std::string& method, const std::string& path, const std::string& body) const {
  HttpAnswer answer = ask(method, path, body);
  if (answer.status == kOk) return answer;
  const char* help =
      answer.status == 401 || answer.status == 403 ? " (--token-env or --token-file gives the token)" : "";
  throw ServerRefusal(cat(access_.address.text(), ": ", method, " ", path, ": refused with ", answer.status, ": ",
                          shown(words_of(answer.body)), help),
                      answer.status);
}

ServerError ServerClient::wrong_answer(const std::string& path, const std::string& expected) const {
  return ServerError(cat(access_.address.text(), ": ", path, ": expected ", expected, ", got another answer"));
}

ServerJson ServerClient::get(const std::string& path) const {
  try {
    return parse_strict_json(ask_for("GET", path, "").body, kDeepestJson);
  } catch (const JsonProblem&) {
    throw wrong_answer(path, "JSON");
  }
}

ServerJson ServerClient::post(const std::string& path, const ServerJson& body) const {
  try {
    return parse_strict_json(ask_for("POST", path, body.dump()).body, kDeepestJson);
  } catch (const JsonProblem&) {
    throw wrong_answer(path, "JSON");
  }
}

void ServerClient::order(const std::string& path, const ServerJson& body) const { ask_for("POST", path, body.dump()); }

std::optional<ServerJson> ServerClient::find(const std::string& path) const {
  const HttpAnswer answer = ask("GET", path, "");
  if (answer.status != kOk) return std::nullopt;
  try {
    return parse_strict_json(answer.body, kDeepestJson);
  } catch (const JsonProblem&) {
    return std::nullopt;
  }
}

int ServerClient::status_of(const std::string& path) const { return ask("GET", path, "").status; }

}  // namespace lancet
