// The interface to a server of another program that holds a model: what it is, which adapters it has, how adapters are
// loaded and unloaded, and what it answers. To add a kind of server, add a file in src/push/servers/ and a row in
// src/push/servers/server_table.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/export/export_job.h"
#include "lancet/http/http_client.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

/// How to reach a server.
struct ServerAccess {
  HttpAddress address = {};
  std::string token = {};            ///< secret that is sent as bearer token and never shown; empty: none
  std::chrono::seconds timeout{60};  ///< time limit of one request
};

/// What a server says about itself. Fields that it does not report are empty.
struct ServerFacts {
  std::string version = {};
  std::string model = {};                    ///< name of the model in requests
  std::string model_path = {};               ///< where it was loaded from: a folder, or a name on the hub
  std::string quantisation = {};             ///< "fp8"
  std::optional<int64_t> largest_rank = {};  ///< largest rank that adapters may have
  /// Last parts of the names of the modules that adapters may change.
  std::optional<std::vector<std::string>> modules = {};
};

/// An adapter as the server lists it.
struct LoadedAdapter {
  std::string name = {};
  std::string path = {};  ///< where the server read it
  double scale = 1;       ///< 0: it is loaded but not applied; only llama.cpp has values other than 1

  bool operator==(const LoadedAdapter&) const = default;
};

/// A request for a greedy continuation.
struct CompletionQuestion {
  std::string adapter = {};  ///< name of an adapter; empty: what requests without an adapter name get
  std::string without = {};  ///< adapter that all requests get but this one must not; empty: none
  std::string text = {};     ///< prompt; empty: `ids` are the prompt
  std::vector<TokenId> ids = {};
  int64_t max_tokens = 16;
  std::vector<TokenId> end_ids = {};  ///< ids that end the continuation, in addition to the model's own
};

/// Teacher-forced scores of the last tokens of a text.
struct TokenScores {
  std::vector<double> log_probabilities = {};
  std::vector<bool> is_likeliest = {};
};

/// The server understood the request and refused it.
class ServerRefusal : public ServerError {
 public:
  ServerRefusal(const std::string& message, int status_code) : ServerError(message), status(status_code) {}

  int status;  ///< HTTP status
};

class InferenceServer {
 public:
  virtual ~InferenceServer() = default;

  /// All functions throw ServerError, and ServerRefusal with the server's message.
  virtual ServerFacts facts() = 0;
  virtual std::vector<LoadedAdapter> adapters() { return {}; }

  /// Returns the format of adapter files that it reads; nullopt: it accepts no adapters.
  virtual std::optional<AdapterFormat> format() const { return std::nullopt; }
  /// Whether requests name an adapter. Otherwise the adapters with a scale apply to all requests.
  virtual bool is_named() const { return true; }
  /// Whether an adapter can be loaded under the base model's own name.
  virtual bool takes_base_name() const { return false; }

  /// Returns why it cannot load the adapter, and the options to start it with; empty: no obstacle is known.
  virtual std::string why_not(const ServerFacts& facts, const AdapterReport& adapter, const LoadedAdapter& wanted);
  /// Loads the adapter; from then on it answers requests that name it. Throws: std::logic_error if adapters are not
  /// named.
  virtual void load(const LoadedAdapter& adapter);
  virtual void unload(const std::string& name);
  /// Sets the scales of loaded adapters, for all requests, at once. Throws: std::logic_error if adapters are named.
  virtual void set_scales(const std::vector<LoadedAdapter>& adapters);

  /// Clears the caches of prompts. Returns a note on what could not be cleared; empty: everything was cleared.
  virtual std::string flush_caches() { return {}; }

  virtual std::string complete(const CompletionQuestion& question) = 0;
  /// Returns the scores of the last `last` ids of the question; nothing is generated after them. Throws: ServerRefusal
  /// if the server gives no scores.
  virtual TokenScores score(const CompletionQuestion& question, size_t last) = 0;
};

/// Returns the names of all kinds, "auto" first.
std::vector<std::string> server_kinds();

struct FoundServer {
  std::string kind = {};
  std::unique_ptr<InferenceServer> server = {};
};
/// Connects to a server. `kind`: one of server_kinds(); "auto": the first kind whose protocol the server answers.
/// Throws: ConfigError for an unknown kind, ServerError if no server answers.
FoundServer find_server(const ServerAccess& access, const std::string& kind);

}  // namespace lancet
