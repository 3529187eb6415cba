// The common part of servers with OpenAI's API: names of models, completions, log-probabilities of a prompt.
#pragma once

#include <string>
#include <vector>

#include "server_client.h"

namespace lancet {

class OpenAiServer : public InferenceServer {
 public:
  explicit OpenAiServer(ServerClient client) : client_(std::move(client)) {}

  ServerFacts facts() override;
  std::string complete(const CompletionQuestion& question) override;
  TokenScores score(const CompletionQuestion& question, size_t last) override;

 protected:
  /// Adds the name of question.adapter to a request that has the base model's name.
  virtual void name_adapter(ServerJson& request, const CompletionQuestion& question) const;
  /// Adds what this kind of server needs in addition to OpenAI's keys.
  virtual void add_own(ServerJson& /*request*/) const {}

  /// Returns the entries of /v1/models: {"id": ..., "root": ..., "parent": ...}.
  std::vector<ServerJson> models() const;
  /// Returns the name of the first model that is not an adapter.
  const std::string& base_model();
  /// Returns the models that are adapters.
  std::vector<LoadedAdapter> adapters_among_models() const;

  ServerClient client_;

 private:
  std::string base_model_;
};

}  // namespace lancet
