// Answers of servers, well-formed and not, and addresses.
#include "lancet/http/http_client.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "lancet/core/listening_socket.h"

namespace lancet {
namespace {

/// Gives one connection these bytes, whatever is asked, and ends it.
class OneAnswer {
 public:
  explicit OneAnswer(std::string bytes, std::chrono::milliseconds after = {})
      : port_(listening_.port()), thread_([this, bytes = std::move(bytes), after] {
          const int socket = ::accept(descriptor_, nullptr, nullptr);
          std::string got(4096, '\0');
          got.resize(static_cast<size_t>(std::max<ssize_t>(0, ::recv(socket, got.data(), got.size(), 0))));
          question_ = got;
          std::this_thread::sleep_for(after);
          ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
          ::close(socket);
        }) {}
  ~OneAnswer() {
    join();
    ::close(descriptor_);
  }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;

  HttpAddress address() const { return {.host = "127.0.0.1", .port = port_, .prefix = "/here"}; }
  const std::string& question() {
    join();
    return question_;
  }

 private:
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  ListeningSocket listening_{"127.0.0.1", 0};
  int64_t port_ = 0;
  int descriptor_ = listening_.release();
  std::string question_;
  std::thread thread_;
};

constexpr HttpQuestionLimits kLimits{.whole = std::chrono::seconds(5), .head_bytes = 300, .body_bytes = 40};

HttpAnswer answer_of(const std::string& bytes) {
  OneAnswer server(bytes);
  return ask_http(server.address(), {.path = "/x"}, kLimits);
}

std::string trouble_of(const std::string& bytes) {
  try {
    answer_of(bytes);
  } catch (const ServerError& error) {
    return error.what();
  }
  return "none";
}

TEST(HttpClient, AsksAsHttpDoes) {
  OneAnswer server("HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok");
  const HttpAnswer answer =
      ask_http(server.address(), {.method = "POST", .path = "/x", .body = "{}", .headers = {{"A", "b"}}}, kLimits);
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.body, "ok");
  EXPECT_EQ(server.question(), "POST /here/x HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.address().port) +
                                   "\r\nConnection: close\r\nAccept: application/json\r\nContent-Type: application/json"
                                   "\r\nContent-Length: 2\r\nA: b\r\n\r\n{}");
}

TEST(HttpClient, ReadsABodyByItsLengthItsChunksOrItsEnd) {
  EXPECT_EQ(answer_of("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef").body, "abc");
  EXPECT_EQ(answer_of("HTTP/1.0 200 OK\r\n\r\nabc").body, "abc");
  EXPECT_EQ(
      answer_of(
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0a\r\n0123456789\r\n0\r\nT: 1\r\n\r\n")
          .body,
      "abc0123456789");
  EXPECT_EQ(answer_of("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n").status, 404);
  EXPECT_EQ(answer_of("HTTP/1.1 204 No Content\r\n\r\n").body, "");
}

TEST(HttpClient, RefusesWhatIsNoAnswer) {
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::pair<std::string, std::string> cases[] = {
      {"", "without an answer"},
      {"HTTP/1.1 200 OK\r\nContent-", "within its answer"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "within its answer"},
      {chunked + "5\r\nabc", "within its answer"},
      {"SSH-2.0-OpenSSH\r\n", "no HTTP: it begins with 'SSH-2.0-OpenSSH"},
      {"HTTP/1.1 2x0 OK\r\n\r\n", "its status is '2x0'"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "two lengths"},
      {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "its length is '-1'"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n", "its length is"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 41\r\n\r\n", "longer than 40 bytes"},
      {"HTTP/1.1 200 OK\r\n\r\n" + std::string(41, 'a'), "longer than 40 bytes"},
      {chunked + "29\r\n" + std::string(41, 'a') + "\r\n0\r\n\r\n", "longer than 40 bytes"},
      {chunked + "zz\r\n", "a chunk's length is 'zz'"},
      {chunked + "1\r\nabc\r\n", "longer than it says"},
      {"HTTP/1.1 200 OK\r\nX: " + std::string(300, 'a') + "\r\n\r\n", "head is longer"},
      {"HTTP/1.1 200 OK\r\n folded\r\n\r\n", "a header without a name"},
      {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", "was not asked for: gzip"}};
  for (const auto& [bytes, words] : cases)
    EXPECT_NE(trouble_of(bytes).find(words), std::string::npos) << trouble_of(bytes) << " for " << bytes;
}

TEST(HttpClient, WaitsNoLongerThanItMay) {
  OneAnswer server("HTTP/1.1 200 OK\r\n\r\n", std::chrono::milliseconds(300));
  HttpQuestionLimits limits = kLimits;
  limits.whole = std::chrono::milliseconds(50);
  EXPECT_THROW(ask_http(server.address(), {.path = "/x"}, limits), ServerError);
}

TEST(HttpClient, SendsNoSecondRequestInAHeader) {
  for (const std::string& value : std::vector<std::string>{"a\r\nX: b", "a\nb", {"a\0b", 3}}) {
    // nothing listens at that port: the refusal comes before it is asked
    const HttpQuestion question{.path = "/x", .headers = {{"Authorization", value}}};
    try {
      ask_http({.host = "127.0.0.1", .port = 1}, question, kLimits);
      ADD_FAILURE() << "it was asked";
    } catch (const ServerError& error) {
      EXPECT_NE(std::string(error.what()).find("control character"), std::string::npos) << error.what();
    }
  }
}

TEST(HttpClient, ReadsAddresses) {
  EXPECT_EQ(parse_http_address("http://localhost").text(), "http://localhost:80");
  EXPECT_EQ(parse_http_address("http://[::1]:8000/v1/").text(), "http://[::1]:8000");
  EXPECT_EQ(parse_http_address("http://10.0.0.1:81/a/b").prefix, "/a/b");
  for (const char* bad : {"https://a", "a:80", "http://", "http://a:0", "http://a:65536", "http://a:b", "http://[::1",
                          "http://[::1]8", "http://a/?x", "http://a b", "http://u:p@a"})
    EXPECT_THROW(parse_http_address(bad), ConfigError) << bad;
}

}  // namespace
}  // namespace lancet
