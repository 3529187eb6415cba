// A server of another program that holds a model: what it is, which adapters it has, how one goes in and out, and what
// it answers. To add one: a file in src/push/servers/ and a row in src/push/servers/server_table.cpp.
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

/// How a server is reached.
struct ServerAccess {
  HttpAddress address = {};
  std::string token = {};            ///< secret, sent as bearer token and shown nowhere; empty: none
  std::chrono::seconds timeout{60};  ///< time that one question may take
};

/// What a server says of itself; what it does not say is empty.
struct ServerFacts {
  std::string version = {};
  std::string model = {};                    ///< name that requests have it under
  std::string model_path = {};               ///< place that it was loaded from: a folder, or a name of the hub
  std::string quantisation = {};             ///< "fp8"
  std::optional<int64_t> largest_rank = {};  ///< largest rank of adapters
  std::optional<std::vector<std::string>> modules = {};  ///< last parts of modules' names that adapters may change
};

/// An adapter as a server has it.
struct LoadedAdapter {
  std::string name = {};
  std::string path = {};  ///< place where the server read it
  double scale = 1;       ///< 0: it is there, and nobody gets it; other than 1 in llama.cpp alone

  bool operator==(const LoadedAdapter&) const = default;
};

/// A greedy continuation that is asked for.
struct CompletionQuestion {
  std::string adapter = {};  ///< name of an adapter; empty: as whoever names none gets it
  std::string without = {};  ///< adapter that everybody gets and this question shall not; empty: none
  std::string text = {};     ///< prompt; empty: `ids` are it
  std::vector<TokenId> ids = {};
  int64_t max_tokens = 16;
  std::vector<TokenId> end_ids = {};  ///< that end it besides the model's own
};

/// Teacher-forced scores of the last tokens of a text.
struct TokenScores {
  std::vector<double> log_probabilities = {};
  std::vector<bool> is_likeliest = {};
};

/// A server that understood what it was asked, and refused.
class ServerRefusal : public ServerError {
 public:
  ServerRefusal(const std::string& message, int status_code) : ServerError(message), status(status_code) {}

  int status;  ///< status of HTTP
};

class InferenceServer {
 public:
  virtual ~InferenceServer() = default;

  /// All of these throw ServerError, and ServerRefusal with the server's own words.
  virtual ServerFacts facts() = 0;
  virtual std::vector<LoadedAdapter> adapters() { return {}; }

  /// Which files of adapters it reads; nullopt: it takes none.
  virtual std::optional<AdapterFormat> format() const { return std::nullopt; }
  /// Whether requests name an adapter; otherwise those with a scale answer everybody.
  virtual bool is_named() const { return true; }
  /// Whether an adapter can be loaded under the base model's own name.
  virtual bool takes_base_name() const { return false; }

  /// Why it cannot take the adapter, and what to start it with; empty: nothing is known against it.
  virtual std::string why_not(const ServerFacts& facts, const AdapterReport& adapter, const LoadedAdapter& wanted);
  /// The adapter answers whoever names it from here on. Throws: std::logic_error where adapters are not named.
  virtual void load(const LoadedAdapter& adapter);
  virtual void unload(const std::string& name);
  /// Gives adapters that are there their scales, for everybody, at once. Throws: std::logic_error where they are named.
  virtual void set_scales(const std::vector<LoadedAdapter>& adapters);

  /// Forgets what was computed of prompts so far. Returns what is left to say of it; empty: all is forgotten.
  virtual std::string flush_caches() { return {}; }

  virtual std::string complete(const CompletionQuestion& question) = 0;
  /// Scores of the last `last` of the question's ids, which nothing follows. Throws: ServerRefusal where it gives none.
  virtual TokenScores score(const CompletionQuestion& question, size_t last) = 0;
};

/// The kinds by name, "auto" first.
std::vector<std::string> server_kinds();

struct FoundServer {
  std::string kind = {};
  std::unique_ptr<InferenceServer> server = {};
};
/// `kind`: one of server_kinds(); "auto": the first that answers as one of that kind does. Throws: ConfigError for a
/// kind that is none, ServerError where nobody answers.
FoundServer find_server(const ServerAccess& access, const std::string& kind);

}  // namespace lancet
