// A request and its reply, independent of the library that reads or writes them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lancet {

struct HttpRequest {
  std::string method = {};
  std::string path = {};                                 ///< decoded: "/api/ask"
  std::map<std::string, std::string> query = {};         ///< decoded; if a name is repeated, its first value
  std::multimap<std::string, std::string> headers = {};  ///< names in lower case
  std::string body = {};
  std::function<bool()> is_awaited = {};  ///< returns whether the sender still waits for the reply; empty: not known

  /// These return an empty text if the header or parameter is missing.
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
  std::string parameter(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? std::string() : found->second;
  }
};

/// Receives the text of a reply piece by piece.
struct ReplySink {
  std::function<bool(std::string_view)> write = {};  ///< returns false if nobody reads the reply any more
  std::function<bool()> is_read = {};                ///< returns whether somebody still reads it
};

struct HttpReply {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::function<void(const ReplySink&)> stream = {};  ///< writes the text piece by piece, instead of `body`
};

/// A refusal of a request, and its reason.
struct Refusal {
  int status = 400;
  std::string message = {};
};

/// Returns {"error": message}, with line breaks unchanged.
HttpReply error_reply(int status, std::string_view message);

}  // namespace lancet
