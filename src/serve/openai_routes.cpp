#include "openai_routes.h"

#include <atomic>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/problem.h"
#include "openai/completion_json.h"
#include "openai/completion_run.h"

namespace lancet {
namespace {

constexpr int64_t kMostAskedBytes = int64_t{1} << 20U;

std::string event(const std::string& json) { return cat("data: ", json, "\n"); }  // the pipe adds the line end

}  // namespace

/// An answer on its way from the model's thread to a connection. The connection always gets an end, whatever happens to
/// the work.
class CompletionReply {
 public:
  explicit CompletionReply(bool is_streamed) : is_streamed_(is_streamed) {}

  AnswerPipe& pipe() { return pipe_; }
  /// The status, after the end of the pipe.
  int status() const { return status_; }

  void put(const std::string& json) {
    if (is_streamed_)
      pipe_.put(event(json));
    else
      whole_ = json;
  }

  void finish() { end(200, is_streamed_ ? event("[DONE]") : whole_); }
  /// Has no effect on a finished answer.
  void fail(const ApiError& error) {
    end(error.status, is_streamed_ ? event(api_error_text(error)) : api_error_text(error));
  }

 private:
  void end(int status, const std::string& last) {
    if (is_over_) return;
    is_over_ = true;
    status_ = status;
    pipe_.close(last);
  }

  const bool is_streamed_;
  AnswerPipe pipe_;
  std::string whole_;
  bool is_over_ = false;  ///< only used by the owner of the work
  std::atomic<int> status_{200};
};

namespace {

/// Owned only by the queue, so that a reply always ends: if this is destroyed before the answer is finished, the work
/// was cancelled, or never began.
class CompletionWork {
 public:
  explicit CompletionWork(std::shared_ptr<CompletionReply> reply) : reply_(std::move(reply)) {}
  ~CompletionWork() { reply_->fail({.status = 503, .message = "cancelled at the page, or by the server's end"}); }
  CompletionWork(const CompletionWork&) = delete;
  CompletionWork& operator=(const CompletionWork&) = delete;
  CompletionReply& operator*() const { return *reply_; }

 private:
  std::shared_ptr<CompletionReply> reply_;
};

ServedModel served_model(const EditDesk& desk, const ServeOptions& options) {
  const ModelFiles& files = desk.files();
  return {.name = std::filesystem::canonical(options.model).filename().string(),
          .folder = options.model.string(),
          .created = seconds_since_1970(),
          .tokenizer = files.tokenizer.get(),
          .vocab_size = files.config.vocab_size,
          .max_positions = files.config.max_positions,
          .end_ids = files.config.eos_ids,
          .chat = desk.chat().chat,
          .why_no_chat = desk.chat().why_none};
}

HttpReply json_text_reply(const std::string& json) { return {.body = json + "\n"}; }

}  // namespace

OpenAiRoutes::OpenAiRoutes(EditDesk& desk, const ServeOptions& options)
    : desk_(desk), model_(served_model(desk, options)) {}

std::vector<HttpRoute> OpenAiRoutes::routes() {
  const auto get = [](const std::string& path, std::string body) {
    return HttpRoute{.path = path,
                     .answer = [body = std::move(body)](const HttpRequest&) { return json_text_reply(body); }};
  };
  const auto post = [this](const std::string& path, CompletionKind kind) {
    return HttpRoute{.method = "POST",
                     .path = path,
                     .body_type = "application/json",
                     .most_body_bytes = kMostAskedBytes,
                     .answer = [this, kind](const HttpRequest& request) { return complete(kind, request); }};
  };
  return {get("/v1/models", models_text(model_)), get("/v1/models/" + model_.name, model_text(model_)),
          post("/v1/completions", CompletionKind::kText), post("/v1/chat/completions", CompletionKind::kChat)};
}

HttpReply OpenAiRoutes::refuse_full() const {
  return api_error_reply(
      {.status = 429,
       .message = cat(desk_.work().waiting.size(), " questions and edits wait already: lancet serve ",
                      "does one at a time, for trying"),
       .code = "rate_limit_exceeded"});
}

void OpenAiRoutes::answer(Session& session, const CompletionOrder& order, CompletionReply& reply) const {
  try {
    const std::string state = cat("edits-", desk_.view().edits_version);
    run_completion(session, order, model_, state, [&](const std::string& json) { reply.put(json); });
    reply.finish();
  } catch (const Cancelled&) {
    throw;
  } catch (const std::exception& error) {
    reply.fail({.status = 500, .message = problem_of(error).message});
    throw;
  }
}

HttpReply OpenAiRoutes::complete(CompletionKind kind, const HttpRequest& request) try {
  const auto order = std::make_shared<const CompletionOrder>(parse_completion(kind, request.body, model_));
  const auto reply = std::make_shared<CompletionReply>(order->is_streamed);
  const std::optional<int64_t> item =
      desk_.ask_session(kind == CompletionKind::kChat ? "answer a chat" : "complete a prompt",
                        [this, order, work = std::make_shared<CompletionWork>(reply)](Session& session) {
                          answer(session, *order, **work);
                        });
  if (!item) return refuse_full();
  if (order->is_streamed)
    return {.type = "text/event-stream", .stream = [this, reply, number = *item](const ReplySink& sink) {
              if (!pass_on(reply->pipe(), sink)) desk_.cancel(number);
            }};
  if (std::optional<std::string> whole = take_all(reply->pipe(), request.is_awaited))
    return {.status = reply->status(), .body = std::move(*whole)};
  desk_.cancel(*item);
  // nobody reads it, but it frees the connection
  return api_error_reply({.status = 503, .message = "whoever asked went away"});
} catch (const ApiProblem& problem) {
  return api_error_reply(problem.error);
}

}  // namespace lancet
