#include "lancet/http/request_guard.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lancet/core/strings.h"
#include "lancet/http/access_token.h"
#include "lower_case.h"

namespace lancet {
namespace {

constexpr std::string_view kBearer = "bearer ";

bool is_port(const std::string& text) {
  const std::optional<int64_t> port = parse_whole_number(text);
  return port && *port > 0 && *port < 65536;
}

/// Returns the name in "name", "name:80" or "[::1]:80"; empty if the text has none of these forms.
std::string name_in(const std::string& host) {
  const size_t end = host.starts_with('[') ? host.find(']') + 1 : std::min(host.find(':'), host.size());
  if (end == 0) return "";  // the closing bracket is missing
  if (end < host.size() && (host[end] != ':' || !is_port(host.substr(end + 1)))) return "";
  const std::string name = host.starts_with('[') ? host.substr(1, end - 2) : host.substr(0, end);
  return lower_case(name);
}

bool is_address(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> unread{};
  return ::inet_pton(AF_INET, name.c_str(), unread.data()) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), unread.data()) == 1;
}

bool is_any_address(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

/// Returns the values of the cookie with that name. A browser may send several.
std::vector<std::string> cookies_of(const HttpRequest& head, const std::string& name) {
  std::vector<std::string> values;
  const auto [begin, end] = head.headers.equal_range("cookie");
  for (auto header = begin; header != end; ++header)
    for (const std::string& pair : split(header->second, ';'))
      if (pair.starts_with(name + "=")) values.push_back(pair.substr(name.size() + 1));
  return values;
}

}  // namespace

bool is_local_address(const std::string& host) {
  return host == "::1" || lower_case(host) == "localhost" || (host.starts_with("127.") && is_address(host));
}

RequestGuard::RequestGuard(GuardOptions options)
    : options_(std::move(options)), cookie_name_(cat("lancet_page_", options_.port)) {}

std::string RequestGuard::cookie() const {
  return cat(cookie_name_, "=", options_.page_secret, "; Path=/; HttpOnly; SameSite=Strict");
}

/// A name's owner can make it lead to any address; an address itself cannot be changed.
bool RequestGuard::is_own_host(const std::string& host) const {
  const std::string name = name_in(host);
  if (name.empty()) return false;
  if (name == "localhost" || name == lower_case(options_.host)) return true;
  if (is_any_address(options_.host)) return is_address(name);
  return is_local_address(options_.host) && is_local_address(name);
}

bool RequestGuard::opens_page(const HttpRequest& head) const {
  if (head.method != "GET" || !options_.pages.contains(head.path)) return false;
  if (equal_in_constant_time(head.parameter(kTokenParameter), options_.token)) return true;
  const std::vector<std::string> cookies = cookies_of(head, cookie_name_);
  return std::ranges::any_of(
      cookies, [&](const std::string& value) { return equal_in_constant_time(value, options_.page_secret); });
}

std::optional<Refusal> RequestGuard::refuse_token(const HttpRequest& head) const {
  const bool is_bearer = !options_.bearer_paths.empty() && head.path.starts_with(options_.bearer_paths);
  if (!is_bearer) {
    if (equal_in_constant_time(head.header(kTokenHeader), options_.token)) return std::nullopt;
    return Refusal{401, "no token, or another one: open the address that lancet serve printed, with ?token=..."};
  }
  const std::string given = head.header("authorization");
  const bool names_bearer = lower_case(given.substr(0, kBearer.size())) == kBearer;
  if (names_bearer && equal_in_constant_time(std::string_view(given).substr(kBearer.size()), options_.token))
    return std::nullopt;
  return Refusal{401,
                 "no token, or another one: expected the header Authorization: Bearer TOKEN, with the token of the "
                 "address that lancet serve printed"};
}

std::optional<Refusal> RequestGuard::refuse_origin(const HttpRequest& head, const std::string& host) const {
  if (const std::string origin = head.header("origin");
      !origin.empty() && lower_case(origin) != lower_case("http://" + host))
    return Refusal{403, cat("Origin ", excerpt(origin, 80), ": expected this server's own page, http://", host)};
  const std::string site = head.header("sec-fetch-site");
  if (site.empty() || site == "same-origin" || (site == "none" && head.method == "GET")) return std::nullopt;
  return Refusal{403, cat("Sec-Fetch-Site ", excerpt(site, 40), ": expected a request of this server's own page")};
}

std::optional<Refusal> RequestGuard::refuse(const HttpRequest& head) const {
  const std::string host = head.header("host");
  if (head.headers.count("host") != 1 || !is_own_host(host))
    return Refusal{403, cat("Host '", excerpt(host, 80), "': expected ", options_.host, " or localhost: open the ",
                            "address that lancet serve printed")};
  if (options_.pages.contains(head.path) && opens_page(head)) return std::nullopt;
  if (std::optional<Refusal> refusal = refuse_token(head)) return refusal;
  return refuse_origin(head, host);
}

}  // namespace lancet
