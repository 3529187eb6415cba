// Who is answered: by the token, the host, and where a request comes from.
#include "lancet/http/request_guard.h"

#include <gtest/gtest.h>

#include <set>

#include "lancet/http/access_token.h"

namespace lancet::testing {
namespace {

const std::string kToken = "0123456789abcdef0123456789abcdef";
const std::string kSecret = "ffffffffffffffffffffffffffffffff";

RequestGuard guard_of(const std::string& host) {
  return RequestGuard({.host = host,
                       .port = 8080,
                       .token = kToken,
                       .page_secret = kSecret,
                       .bearer_paths = "/v1/",
                       .pages = {"/", "/a.js"}});
}

HttpRequest order(const std::string& host = "127.0.0.1:8080") {
  return {.method = "POST", .path = "/api/edit", .headers = {{"host", host}, {"x-lancet-token", kToken}}};
}

int status_of(const HttpRequest& request, const std::string& host = "127.0.0.1") {
  const std::optional<Refusal> refusal = guard_of(host).refuse(request);
  return refusal ? refusal->status : 200;
}

HttpRequest with(HttpRequest request, const std::string& name, const std::string& value) {
  request.headers.erase(name);
  request.headers.emplace(name, value);
  return request;
}

TEST(AccessTokens, Have128BitsAndDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string token = make_access_token();
    EXPECT_EQ(token.size(), 32u);
    EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos) << token;
    EXPECT_TRUE(seen.insert(token).second);
  }
}

TEST(AccessTokens, AreEqualAsAWholeAlone) {
  EXPECT_TRUE(equal_in_constant_time(kToken, kToken));
  EXPECT_TRUE(equal_in_constant_time("", ""));
  for (size_t i = 0; i < kToken.size(); ++i) {
    std::string other = kToken;
    other[i] = 'x';
    EXPECT_FALSE(equal_in_constant_time(kToken, other)) << i;
    EXPECT_FALSE(equal_in_constant_time(kToken, kToken.substr(0, i))) << i;
  }
  EXPECT_FALSE(equal_in_constant_time(kToken, kToken + "0"));
}

TEST(RequestGuards, WantABearerTokenBelowItsPathsAlone) {
  const auto asked = [](const std::string& path, const std::string& authorization) {
    return HttpRequest{
        .method = "POST", .path = path, .headers = {{"host", "127.0.0.1:8080"}, {"authorization", authorization}}};
  };
  EXPECT_EQ(status_of(asked("/v1/completions", "Bearer " + kToken)), 200);
  EXPECT_EQ(status_of(asked("/v1/completions", "bearer " + kToken)), 200) << "RFC 9110: schemes are in any case";
  EXPECT_EQ(status_of(asked("/api/edit", "Bearer " + kToken)), 401);
  for (const std::string& other : {std::string(), std::string("Bearer"), std::string("Bearer "), "Basic " + kToken,
                                   kToken, "Bearer " + kSecret, "Bearer " + kToken + " "})
    EXPECT_EQ(status_of(asked("/v1/completions", other)), 401) << other;
  EXPECT_EQ(status_of(with(asked("/v1/completions", ""), "x-lancet-token", kToken)), 401);
  EXPECT_EQ(status_of(with(asked("/v1/completions", "Bearer " + kToken), "origin", "http://elsewhere.org")), 403);
}

TEST(RequestGuards, AnswerOwnPagesWithTheToken) {
  EXPECT_EQ(status_of(order()), 200);
  EXPECT_EQ(status_of(with(with(order(), "origin", "http://127.0.0.1:8080"), "sec-fetch-site", "same-origin")), 200);
  EXPECT_EQ(status_of(with(order("localhost:9999"), "origin", "http://localhost:9999")), 200) << "a forwarded port";
}

TEST(RequestGuards, RefuseOthersWithoutTheTokenInItsHeader) {
  HttpRequest none = order();
  none.headers.erase("x-lancet-token");
  EXPECT_EQ(status_of(none), 401);
  EXPECT_EQ(status_of(with(order(), "x-lancet-token", kSecret)), 401);
  EXPECT_EQ(status_of(with(order(), "x-lancet-token", "")), 401);
  none.query["token"] = kToken;  // of pages alone
  EXPECT_EQ(status_of(none), 401);
  EXPECT_EQ(status_of(with(none, "cookie", "lancet_page_8080=" + kSecret)), 401) << "cookies go to other ports too";
}

TEST(RequestGuards, OpenPagesByTheAddressOrTheCookie) {
  const HttpRequest page{.method = "GET", .path = "/", .headers = {{"host", "localhost:8080"}}};
  EXPECT_EQ(status_of(page), 401);
  HttpRequest named = page;
  named.query["token"] = kToken;
  EXPECT_EQ(status_of(named), 200);
  EXPECT_EQ(status_of(with(named, "sec-fetch-site", "cross-site")), 200) << "a link that a colleague sent";
  named.query["token"] = kSecret;
  EXPECT_EQ(status_of(named), 401);
  EXPECT_EQ(status_of(with(page, "cookie", "a=b; lancet_page_8080=" + kSecret + "; c=d")), 200);
  EXPECT_EQ(status_of(with(page, "cookie", "lancet_page_8081=" + kSecret)), 401);
  EXPECT_EQ(status_of(with(page, "cookie", "lancet_page_8080=" + kToken)), 401);
  HttpRequest post = with(page, "cookie", "lancet_page_8080=" + kSecret);
  post.method = "POST";
  EXPECT_EQ(status_of(post), 401);
}

TEST(RequestGuards, RefuseForeignNames) {
  for (const char* host : {"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example:80",
                           "10.1.2.3:8080", "", "localhost:", "localhost:0", "localhost:x", "[::1", "[]:80", "a b",
                           "127.0.0.1:8080:1", "localhost@evil.example", "[::1]x"})
    EXPECT_EQ(status_of(order(host)), 403) << host;
  HttpRequest two = order();
  two.headers.emplace("host", "evil.example");
  EXPECT_EQ(status_of(two), 403);
  HttpRequest none = order();
  none.headers.erase("host");
  EXPECT_EQ(status_of(none), 403);
  for (const char* host : {"127.0.0.1", "LOCALHOST:8080", "[::1]:8080", "127.0.0.2:1"})
    EXPECT_EQ(status_of(order(host)), 200) << host;
}

TEST(RequestGuards, KnowTheHostThatTheyAreBoundTo) {
  EXPECT_EQ(status_of(order("10.1.2.3:8080"), "10.1.2.3"), 200);
  EXPECT_EQ(status_of(order("10.1.2.4:8080"), "10.1.2.3"), 403);
  EXPECT_EQ(status_of(order("127.0.0.1:8080"), "10.1.2.3"), 403);
  EXPECT_EQ(status_of(order("10.1.2.3:8080"), "0.0.0.0"), 200) << "an address cannot be made to lead elsewhere";
  EXPECT_EQ(status_of(order("[2001:db8::1]:8080"), "::"), 200);
  EXPECT_EQ(status_of(order("box.example:8080"), "0.0.0.0"), 403);
  EXPECT_EQ(status_of(order("box.example:8080"), "box.example"), 200);
}

TEST(RequestGuards, RefuseForeignOrigins) {
  for (const char* origin : {"http://evil.example", "https://127.0.0.1:8080", "http://127.0.0.1:8081", "null",
                             "http://127.0.0.1", "http://localhost:8080", "http://127.0.0.1:8080.evil.example"})
    EXPECT_EQ(status_of(with(order(), "origin", origin)), 403) << origin;
  for (const char* site : {"cross-site", "same-site", "none", "else"})
    EXPECT_EQ(status_of(with(order(), "sec-fetch-site", site)), 403) << site;
}

TEST(RequestGuards, TellLoopbackFromTheWorld) {
  for (const char* host : {"127.0.0.1", "127.8.9.1", "::1", "localhost", "LocalHost"})
    EXPECT_TRUE(is_local_address(host)) << host;
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "127.evil.example", "example"})
    EXPECT_FALSE(is_local_address(host)) << host;
}

TEST(RequestGuards, SetACookieThatScriptsAndOtherSitesDoNotGet) {
  EXPECT_EQ(guard_of("127.0.0.1").cookie(), "lancet_page_8080=" + kSecret + "; Path=/; HttpOnly; SameSite=Strict");
}

}  // namespace
}  // namespace lancet::testing
