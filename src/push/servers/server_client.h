// JSON over HTTP to one server, with its token. No message contains the token.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "lancet/push/inference_server.h"

namespace lancet {

using ServerJson = nlohmann::json;

class ServerClient {
 public:
  /// Throws: ConfigError if the token cannot be part of a header.
  explicit ServerClient(ServerAccess access);

  const ServerAccess& access() const { return access_; }

  /// Throws: ServerRefusal for a status other than 200, ServerError if the answer is not JSON.
  ServerJson get(const std::string& path) const;
  ServerJson post(const std::string& path, const ServerJson& body) const;
  /// As post(), for answers that are not JSON.
  void order(const std::string& path, const ServerJson& body) const;

  /// Returns nullopt if there is no such path, or if the token may not use it. Throws: ServerError if nobody answers.
  std::optional<ServerJson> find(const std::string& path) const;
  /// Returns the status of a GET.
  int status_of(const std::string& path) const;

  /// Returns "http://127.0.0.1:8000: /v1/models: expected ..., got ...".
  ServerError wrong_answer(const std::string& path, const std::string& expected) const;

 private:
  HttpAnswer ask(const std::string& method, const std::string& path, const std::string& body) const;
  HttpAnswer ask_for(const std::string& method, const std::string& path, const std::string& body) const;
  std::string shown(std::string_view text) const;

  ServerAccess access_;
};

/// Returns the text under `key`; empty if there is none.
std::string text_in(const ServerJson& object, const char* key);

}  // namespace lancet
