// A request and its reply, apart from any library that reads or writes them.
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
  std::map<std::string, std::string> query = {};         ///< decoded; the first of equal names
  std::multimap<std::string, std::string> headers = {};  ///< names in lower case
  std::string body = {};
  std::function<bool()> is_awaited = {};  ///< whether whoever asked still waits for the reply; empty: not known

  /// Empty where it is not there.
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
  std::string parameter(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? std::string() : found->second;
  }
};

/// Receiver of a reply's text that is made piece by piece.
struct ReplySink {
  std::function<bool(std::string_view)> write = {};  ///< false: nobody reads it any more
  std::function<bool()> is_read = {};                ///< whether somebody still does
};

struct HttpReply {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::function<void(const ReplySink&)> stream = {};  ///< makes the text piece by piece, in place of a body
};

/// A request that is not answered, and why.
struct Refusal {
  int status = 400;
  std::string message = {};
};

/// {"error": message}, with line breaks as they are.
HttpReply error_reply(int status, std::string_view message);

}  // namespace lancet
