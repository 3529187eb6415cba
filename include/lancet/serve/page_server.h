// `lancet serve`: a model in memory that a page in the browser asks and edits. docs/serve.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lancet {

struct ServeOptions {
  std::filesystem::path model = {};
  std::vector<std::string> overrides = {};  ///< arguments as of `lancet edit --set`
  std::filesystem::path dir = "out/serve";  ///< folder for the saved edits and for exports
  std::string host = "127.0.0.1";
  int64_t port = 0;                     ///< 0: any free port
  int64_t most_facts = 100;             ///< largest number of facts in one edit
  std::filesystem::path examples = {};  ///< facts that the page offers as examples; empty: built-in ones
  std::string chat_template = {};       ///< text with {} for the user's words; empty: the checkpoint's template
};

class PageServer {
 public:
  /// Starts listening, loads the model, and restores the edits in `dir`. Throws: ConfigError, also if these edits
  /// belong to another model or another server uses `dir`; and as Session.
  explicit PageServer(const ServeOptions& options);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  /// Returns the page's address, with the token.
  std::string address() const;
  /// Returns the base URL for clients of OpenAI's API; their key is the token.
  std::string api_address() const;
  /// Returns the number of restored edits.
  int64_t restored_edits() const;
  /// Returns the folder of the saved edits.
  std::filesystem::path edits_folder() const;

  /// Answers requests until stop().
  void run();
  /// Cancels running work; returns when it has ended, or after some seconds. Any thread may call it.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lancet
