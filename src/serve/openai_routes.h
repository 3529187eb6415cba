// OpenAI's API for the desk's session: models, completions, chats. It is meant for trying out: one question is answered
// at a time.
#pragma once

#include <vector>

#include "edit_desk.h"
#include "lancet/http/http_server.h"
#include "openai/completion_order.h"

namespace lancet {

/// The beginning of the paths.
inline constexpr const char* kApiPaths = "/v1/";

class CompletionReply;

class OpenAiRoutes {
 public:
  /// Both arguments must outlive this object.
  OpenAiRoutes(EditDesk& desk, const ServeOptions& options);

  std::vector<HttpRoute> routes();

 private:
  HttpReply complete(CompletionKind kind, const HttpRequest& request);
  /// Runs on the model's thread.
  void answer(Session& session, const CompletionOrder& order, CompletionReply& reply) const;
  HttpReply refuse_full() const;

  EditDesk& desk_;
  const ServedModel model_;
};

}  // namespace lancet
