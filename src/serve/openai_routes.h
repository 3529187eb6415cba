// The addresses of OpenAI's API on the desk's session: models, completions, chats. For trying: one question at a time.
#pragma once

#include <vector>

#include "edit_desk.h"
#include "lancet/http/http_server.h"
#include "openai/completion_order.h"

namespace lancet {

/// Beginning of the paths.
inline constexpr const char* kApiPaths = "/v1/";

class CompletionReply;

class OpenAiRoutes {
 public:
  /// Both outlive this.
  OpenAiRoutes(EditDesk& desk, const ServeOptions& options);

  std::vector<HttpRoute> routes();

 private:
  HttpReply complete(CompletionKind kind, const HttpRequest& request);
  /// On the model's thread.
  void answer(Session& session, const CompletionOrder& order, CompletionReply& reply) const;
  HttpReply refuse_full() const;

  EditDesk& desk_;
  const ServedModel model_;
};

}  // namespace lancet
