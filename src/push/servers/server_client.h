// JSON over HTTP to one server, with its token, which no message ever has.
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
  /// Throws: ConfigError for a token that cannot stand in a header.
  explicit ServerClient(ServerAccess access);

  const ServerAccess& access() const { return access_; }

  /// Throws: ServerRefusal for a status other than 200, ServerError for what is no JSON.
  ServerJson get(const std::string& path) const;
  ServerJson post(const std::string& path, const ServerJson& body) const;
  /// Likewise, for answers that are no JSON.
  void order(const std::string& path, const ServerJson& body) const;

  /// nullopt: there is no such path, or it is not for this token. Throws: ServerError where nobody answers.
  std::optional<ServerJson> find(const std::string& path) const;
  /// The status that a GET has.
  int status_of(const std::string& path) const;

  /// "http://127.0.0.1:8000: /v1/models: expected ..., got ...".
  ServerError wrong_answer(const std::string& path, const std::string& expected) const;

 private:
  HttpAnswer ask(const std::string& method, const std::string& path, const std::string& body) const;
  HttpAnswer ask_for(const std::string& method, const std::string& path, const std::string& body) const;
  std::string shown(std::string_view text) const;

  ServerAccess access_;
};

/// The text under `key`; empty where there is none.
std::string text_in(const ServerJson& object, const char* key);

}  // namespace lancet
