// A judge on an HTTP server with OpenAI's chat completions API, which vLLM, SGLang, llama.cpp's server and Ollama have.
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/http/http_client.h"
#include "lancet/http/request_guard.h"
#include "lancet/http/server_token.h"
#include "lancet/judge/answer_judge.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

constexpr const char* kPath = "/v1/chat/completions";
constexpr int kOk = 200, kTooMany = 429, kUnavailable = 503;
constexpr size_t kShownBytes = 300;

bool is_offline() {
  const char* offline = std::getenv("LANCET_OFFLINE");
  return offline != nullptr && *offline != '\0' && std::string_view(offline) != "0";
}

/// Returns an empty text if no variable is named.
std::string read_token(const std::string& variable) {
  return variable.empty() ? "" : token_of_environment(variable, cat("evaluate.judge.token_env: ", variable));
}

HttpAddress allowed_address(const JudgeOptions& options) {
  const std::string where = cat("evaluate.judge.url: ", options.url);
  const HttpAddress address = parse_http_address(options.url);
  if (is_offline())
    throw ConfigError(cat(where, ": LANCET_OFFLINE is set, so no server is asked: expected judge.command, or the ",
                          "variable unset"));
  if (!options.may_be_remote && !is_local_address(address.host))
    throw ConfigError(cat(where, ": expected a server on this machine (127.0.0.1, localhost), because it reads ",
                          "prompts, targets and answers; remote: true allows another"));
  return address;
}

class JudgeServer final : public JudgeLine {
 public:
  explicit JudgeServer(const JudgeOptions& options)
      : address_(allowed_address(options)),
        token_(read_token(options.token_env)),
        model_(options.model),
        tokens_(options.tokens),
        limits_{.whole = std::chrono::seconds(options.seconds)} {}

  std::string ask(const JudgedAnswer& /*judged*/, const std::string& question) override {
    const Json body = {{"model", model_},
                       {"messages", {{{"role", "user"}, {"content", question}}}},
                       {"temperature", 0},
                       {"max_tokens", tokens_},
                       {"stream", false}};
    HttpQuestion asked{
        .method = "POST", .path = kPath, .body = body.dump(-1, ' ', false, Json::error_handler_t::replace)};
    add_token(asked, token_);
    const HttpAnswer answer = ask_patiently(asked);
    if (answer.status != kOk) throw wrong_answer(cat("status 200, got ", answer.status, ": ", shown(answer.body)));
    return content_of(answer.body);
  }

 private:
  /// Asks again while the server is busy: after 1, 2, 4, ... seconds, as long as the time for one question allows it.
  HttpAnswer ask_patiently(const HttpQuestion& asked) const {
    for (std::chrono::milliseconds pause = std::chrono::seconds(1), waited{};; waited += pause, pause *= 2) {
      HttpAnswer answer = ask_http(address_, asked, limits_);
      const bool is_busy = answer.status == kTooMany || answer.status == kUnavailable;
      if (!is_busy || waited + pause > limits_.whole) return answer;
      wait(pause);
    }
  }

  static void wait(std::chrono::milliseconds pause) {
    constexpr std::chrono::milliseconds kSlice(100);
    for (std::chrono::milliseconds slept{}; slept < pause; slept += kSlice) {
      count_progress();  // throws Cancelled
      std::this_thread::sleep_for(kSlice);
    }
  }

  ServerError wrong_answer(const std::string& expected) const {
    return ServerError(cat(address_.text(), ": POST ", kPath, ": expected ", expected));
  }

  std::string shown(const std::string& text) const {
    return printable(excerpt(without_token(text, token_), kShownBytes));
  }

  std::string content_of(const std::string& body) const {
    try {
      const Json json = parse_strict_json(body);
      const Json& content = json.at("choices").at(0).at("message").at("content");
      if (content.is_null()) return {};  // the answer has only thoughts
      return content.get<std::string>();
    } catch (const JsonProblem& problem) {
      throw wrong_answer(cat("JSON, got ", problem.what()));
    } catch (const Json::exception&) {
      throw wrong_answer(cat("choices[0].message.content, got ", shown(body)));
    }
  }

  HttpAddress address_;
  std::string token_;
  std::string model_;
  int64_t tokens_;
  HttpQuestionLimits limits_;
};

}  // namespace

std::unique_ptr<JudgeLine> make_server_line(const JudgeOptions& options) {
  return std::make_unique<JudgeServer>(options);
}

}  // namespace lancet
