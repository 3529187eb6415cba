// Who may ask: whoever knows the token, by a page of this server's own, under a name that no other site can take.
//
// The token is a header of every request that does something, which the page keeps to itself: a cookie would be sent
// to whatever else listens on another port of the same host. The page itself and its files tell nothing; they also open
// by a cookie with a secret of its own, so that the page can be loaded again without a token in its address.
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
  std::string host = {};             ///< that the server is bound to, as it was given
  int64_t port = 0;                  ///< likewise; a forwarded one may differ
  std::string token = {};            ///< token of make_access_token()
  std::string page_secret = {};      ///< likewise, another one
  std::string bearer_paths = {};     ///< beginning of paths whose requests have it as bearer token; empty: none
  std::set<std::string> pages = {};  ///< paths that open by the address's token, or by the cookie
};

class RequestGuard {
 public:
  explicit RequestGuard(GuardOptions options);

  /// Looks at the head alone; nullopt: it may be answered.
  std::optional<Refusal> refuse(const HttpRequest& head) const;

  /// Returns Set-Cookie's value for replies to pages.
  std::string cookie() const;

 private:
  bool is_own_host(const std::string& host) const;
  bool opens_page(const HttpRequest& head) const;
  std::optional<Refusal> refuse_token(const HttpRequest& head) const;
  std::optional<Refusal> refuse_origin(const HttpRequest& head, const std::string& host) const;

  GuardOptions options_;
  std::string cookie_name_;
};

/// Whether only this machine reaches the address: "127.0.0.1", "::1", "localhost".
bool is_local_address(const std::string& host);

}  // namespace lancet
