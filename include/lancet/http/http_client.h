// A question to a server of another program over plain HTTP, within limits: of time for the whole, of bytes for its
// head and body. One connection a question.
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

/// Another program did not answer, or answered what no server of its kind does.
class ServerError : public Error {
 public:
  explicit ServerError(const std::string& message) : Error(ExitCode::kCollective, message) {}
};

/// The place where a server listens.
struct HttpAddress {
  std::string host = {};    ///< a name, or an IP address without brackets
  int64_t port = 80;        ///< number of its port
  std::string prefix = {};  ///< that its paths begin with, without a slash at the end; mostly empty

  /// "http://127.0.0.1:8000".
  std::string text() const;
};

/// Reads "http://HOST[:PORT][/PREFIX]". Throws: ConfigError for other schemes (https among them: a tunnel makes it
/// plain), for names or passwords in an address, which would end in logs, and for what is no address.
HttpAddress parse_http_address(std::string_view url);

struct HttpQuestion {
  std::string method = "GET";  ///< or "POST"
  std::string path = {};       ///< place behind the address's prefix: "/v1/models"
  std::string body = {};       ///< JSON; sent with POST alone
  std::vector<std::pair<std::string, std::string>> headers = {};
};

struct HttpAnswer {
  int status = 0;
  std::string body = {};
};

struct HttpQuestionLimits {
  std::chrono::milliseconds whole{60'000};            ///< time to the last byte; the look-up of a name may take longer
  std::chrono::milliseconds connect{10'000};          ///< time of it until there is a connection
  size_t head_bytes = 65'536;                         ///< size of status line and headers
  size_t body_bytes = static_cast<size_t>(32) << 20;  ///< size of the body, without what chunks add
};

/// Throws: ServerError that says the address, what was asked, and what went wrong: no connection, an end before the
/// end, too slow, too long, no HTTP. Cancelled, while it waits.
HttpAnswer ask_http(const HttpAddress& address, const HttpQuestion& question, const HttpQuestionLimits& limits);

}  // namespace lancet
