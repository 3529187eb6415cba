// What servers have in common that speak OpenAI's API: names of models, completions, log-probabilities of a prompt.
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
  /// Puts what names question.adapter into a request, which has the base model's name.
  virtual void name_adapter(ServerJson& request, const CompletionQuestion& question) const;
  /// Puts in what this kind needs besides OpenAI's keys.
  virtual void add_own(ServerJson& /*request*/) const {}

  /// The entries of /v1/models: {"id": ..., "root": ..., "parent": ...}.
  std::vector<ServerJson> models() const;
  /// The name of the first that is no adapter.
  const std::string& base_model();
  /// Those that are adapters.
  std::vector<LoadedAdapter> adapters_among_models() const;

  ServerClient client_;

 private:
  std::string base_model_;
};

}  // namespace lancet
