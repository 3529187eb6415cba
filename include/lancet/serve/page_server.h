// `lancet serve`: a model in memory that is asked and edited from a page in a browser. docs/serve.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lancet {

struct ServeOptions {
  std::filesystem::path model = {};
  std::vector<std::string> overrides = {};  ///< arguments in the form of `lancet edit --set`
  std::filesystem::path dir = "out/serve";  ///< folder where edits are kept, and where exports go
  std::string host = "127.0.0.1";
  int64_t port = 0;                     ///< 0: a free one
  int64_t most_facts = 100;             ///< most facts of one edit
  std::filesystem::path examples = {};  ///< facts that the page offers to try; empty: built-in ones
  std::string chat_template = {};       ///< text with {} for the user's words; empty: the checkpoint's template
};

class PageServer {
 public:
  /// Listens, loads the model, and makes the edits again that `dir` has. Throws: ConfigError, also for edits there of
  /// another model, and where another server uses `dir`; and as Session.
  explicit PageServer(const ServeOptions& options);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  /// Returns the page's address, with the token.
  std::string address() const;
  /// Returns the address that clients of OpenAI's API take as base URL; their key is the token.
  std::string api_address() const;
  /// Edits that were made again.
  int64_t restored_edits() const;
  /// Returns the folder where edits are kept.
  std::filesystem::path edits_folder() const;

  /// Answers until stop().
  void run();
  /// Cancels what runs; returns when it has ended, or after some seconds. Any thread may call it.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lancet
