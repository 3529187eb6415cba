// Sends a request to another program's server over plain HTTP. The total time and the bytes of head and body are
// limited. Each request has its own connection.
// Source: RFC 9112 (messages, chunked bodies), RFC 3986, 3 (addresses).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lancet/core/error.h"

namespace lancet {

/// Another program did not answer, or its answer was not that of a server of the expected kind.
class ServerError : public Error {
 public:
  explicit ServerError(const std::string& message) : Error(ExitCode::kCollective, message) {}
};

/// The address of a server.
struct HttpAddress {
  std::string host = {};    ///< a name, or an IP address without brackets
  int64_t port = 80;        ///< port number
  std::string prefix = {};  ///< beginning of all paths of the server, without a slash at the end; usually empty

  /// Returns "http://127.0.0.1:8000".
  std::string text() const;
};

/// Parses "http://HOST[:PORT][/PREFIX]". Throws: ConfigError for other schemes, https included (a tunnel can make it
/// plain), for a user name or password in the address, since it would appear in logs, and for an invalid address.
HttpAddress parse_http_address(std::string_view url);

struct HttpQuestion {
  std::string method = "GET";  ///< or "POST"
  std::string path = {};       ///< path after the prefix of the address: "/v1/models"
  std::string body = {};       ///< JSON; only sent with POST
  std::vector<std::pair<std::string, std::string>> headers = {};
};

struct HttpAnswer {
  int status = 0;
  std::string body = {};
};

struct HttpQuestionLimits {
  std::chrono::milliseconds whole{60'000};            ///< time until the last byte; looking up a name may take longer
  std::chrono::milliseconds connect{10'000};          ///< part of this time until there is a connection
  size_t head_bytes = 65'536;                         ///< size of the status line and the headers
  size_t body_bytes = static_cast<size_t>(32) << 20;  ///< size of the body, without the framing of chunks
};

/// Sends the request and returns the answer. Throws: ServerError with the address, the request and the problem: no
/// connection, an early end, too slow, too long, not HTTP; Cancelled while it waits.
HttpAnswer ask_http(const HttpAddress& address, const HttpQuestion& question, const HttpQuestionLimits& limits);

}  // namespace lancet
