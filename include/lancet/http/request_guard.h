// Decides which requests are answered: the sender must know the token, the request must come from a page of this
// server, and the host name must be one that no other site can use.
//
// Every request that does something carries the token in a header, which the page keeps to itself. A cookie would also
// be sent to other servers at other ports of the same host. The page and its files hold no secrets. They also open with
// a cookie that has a secret of its own, so that the page can be reloaded without a token in its address.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "lancet/http/http_message.h"

namespace lancet {

inline constexpr const char* kTokenHeader = "x-lancet-token";
inline constexpr const char* kTokenParameter = "token";

struct GuardOptions {
  std::string host = {};          ///< the host that the server is bound to, as it was given
  int64_t port = 0;               ///< the port that the server is bound to; a forwarded port may differ
  std::string token = {};         ///< token of make_access_token()
  std::string page_secret = {};   ///< another secret of make_access_token()
  std::string bearer_paths = {};  ///< prefix of the paths whose requests carry the token as bearer token; empty: none
  std::set<std::string> pages = {};  ///< paths that open with the token in the address, or with the cookie
};

class RequestGuard {
 public:
  explicit RequestGuard(GuardOptions options);

  /// Checks the head alone. Returns nullopt if the request may be answered.
  std::optional<Refusal> refuse(const HttpRequest& head) const;

  /// Returns the value of Set-Cookie for replies to pages.
  std::string cookie() const;

 private:
  bool is_own_host(const std::string& host) const;
  bool opens_page(const HttpRequest& head) const;
  std::optional<Refusal> refuse_token(const HttpRequest& head) const;
  std::optional<Refusal> refuse_origin(const HttpRequest& head, const std::string& host) const;

  GuardOptions options_;
  std::string cookie_name_;
};

/// Returns whether the address is reachable only from this machine: "127.0.0.1", "::1", "localhost".
bool is_local_address(const std::string& host);

}  // namespace lancet
