// The server on a socket: what it answers, what it refuses unread, and that it ends.
#include "lancet/http/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet::testing {
namespace {

/// A connection of a test's.
class Client {
 public:
  explicit Client(int64_t port, const char* own_address = nullptr) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (own_address != nullptr) {
      sockaddr_in own{};
      own.sin_family = AF_INET;
      ::inet_pton(AF_INET, own_address, &own.sin_addr);
      EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&own), sizeof(own)), 0);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Client& send(const std::string& text) {
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t more = ::send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (more <= 0) break;  // refused before it was read
      sent += static_cast<size_t>(more);
    }
    return *this;
  }

  /// Receives up to `end`, or to the connection's.
  std::string receive(const std::string& end = "") {
    std::string all;
    std::array<char, 4096> piece{};
    while (end.empty() || all.find(end) == std::string::npos) {
      const ssize_t got = ::recv(socket_, piece.data(), piece.size(), 0);
      if (got <= 0) break;
      all.append(piece.data(), static_cast<size_t>(got));
    }
    return all;
  }

 private:
  int socket_;
};

class HttpServers : public ::testing::Test {
 protected:
  explicit HttpServers(HttpLimits limits = {.head_bytes = 2000}) : server_("127.0.0.1", 0, limits) {
    std::vector<HttpRoute> routes;
    routes.push_back({.path = "/hello", .answer = [](const HttpRequest& request) {
                        return HttpReply{.type = "text/plain", .body = "hello " + request.parameter("name")};
                      }});
    routes.push_back({.method = "POST",
                      .path = "/echo",
                      .body_type = "text/plain",
                      .most_body_bytes = 1000,
                      .answer = [](const HttpRequest& request) {
                        return HttpReply{.type = "text/plain", .body = "got " + request.body};
                      }});
    routes.push_back(
        {.path = "/bad", .answer = [](const HttpRequest&) -> HttpReply { throw ConfigError("no <good>"); }});
    routes.push_back({.path = "/worse", .answer = [](const HttpRequest&) -> HttpReply { throw std::bad_alloc(); }});
    routes.push_back({.path = "/stream", .answer = [this](const HttpRequest&) {
                        return HttpReply{.type = "application/x-ndjson", .stream = [this](const ReplySink& sink) {
                                           sink.write("first\n");
                                           while (sink.is_read() && !is_let_go_) std::this_thread::yield();
                                           was_read_ = sink.is_read();
                                           sink.write("last\n");
                                           ++n_streams_;
                                         }};
                      }});
    server_.serve(std::move(routes),
                  [this](const HttpRequest& head) -> std::optional<Refusal> {
                    ++n_heads_;
                    if (head.header("x-key") == "wrong") return Refusal{401, "no key"};
                    return std::nullopt;
                  },
                  {{"X-Always", "there"}});
    thread_ = std::thread([this] { server_.run(); });
  }
  ~HttpServers() override {
    server_.stop();
    thread_.join();
  }

  std::string reply(const std::string& text) { return Client(server_.port()).send(text).receive(); }
  static std::string post(const std::string& headers) {
    return cat("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n", headers, "\r\n");
  }
  void expect_status(const std::string& text, const std::string& status, const std::string& part = "") {
    const std::string got = reply(text);
    EXPECT_TRUE(got.starts_with(cat("HTTP/1.1 ", status, " "))) << got << "\n" << text.substr(0, 200);
    EXPECT_NE(got.find(part), std::string::npos) << got;
  }

  std::atomic<bool> is_let_go_ = false, was_read_ = true;
  std::atomic<int> n_heads_ = 0, n_streams_ = 0;
  HttpServer server_;
  std::thread thread_;
};

TEST_F(HttpServers, Answers) {
  expect_status("GET /hello?name=you%21 HTTP/1.1\r\nHost: x\r\n\r\n", "200", "\r\n\r\nhello you!");
  expect_status("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", "200", "X-Always: there");
  expect_status("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", "200", "Connection: close");
  expect_status(post("Content-Length: 3\r\n") + "abc", "200", "got abc");
  expect_status(post("Transfer-Encoding: chunked\r\n") + "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", "200", "got abc");
  expect_status("GET /bad HTTP/1.1\r\nHost: x\r\n\r\n", "400", "{\"error\":\"no <good>\"}");
  expect_status("GET /worse HTTP/1.1\r\nHost: x\r\n\r\n", "500");
}

TEST_F(HttpServers, RefusesBeforeItReads) {
  expect_status(post("X-Key: wrong\r\nContent-Length: 900\r\n"), "401", "no key");
  expect_status(post("Content-Length: 1001\r\n"), "413", "at most 1.0 kB");
  expect_status(post("Content-Length: 99999999999999999999\r\n"), "411");
  expect_status(post("Content-Length: 3\r\nContent-Length: 4\r\n"), "411");
  expect_status(post(""), "411");
  expect_status(post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), "400");
  expect_status(post("Content-Length: 3\r\nContent-Encoding: gzip\r\n"), "415");
  expect_status("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n", "415");
  expect_status("GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", "405", "expected POST");
  expect_status("GET /else HTTP/1.1\r\nHost: x\r\n\r\n", "404");
  expect_status("GET /hello/../hello HTTP/1.1\r\nHost: x\r\n\r\n", "404");
  expect_status("GET /hello%00 HTTP/1.1\r\nHost: x\r\n\r\n", "404");
}

TEST_F(HttpServers, ReadsNoMoreOfAChunkedBodyThanItTakes) {
  std::string flood = post("Transfer-Encoding: chunked\r\n");
  for (int i = 0; i < 2000; ++i) flood += cat("400\r\n", std::string(0x400, 'x'), "\r\n");
  expect_status(flood, "413");
}

TEST_F(HttpServers, TakesARequestForOneAlone) {
  const int before = n_heads_;
  expect_status(post("Content-Length: 2000\r\n") + "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", "413");
  EXPECT_EQ(n_heads_, before + 1) << "a refused body is no request";
}

TEST_F(HttpServers, EndsHeadsThatAreTooLong) {
  std::string head = "GET /hello HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 30; ++i) head += cat("X-", i, ": ", std::string(100, 'x'), "\r\n");
  expect_status(head + "\r\n", "431", "at most 2000 bytes");
  expect_status("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", "200");
}

class SparingServers : public HttpServers {
 protected:
  SparingServers() : HttpServers({.request_bytes = 100000}) {}
};

TEST_F(SparingServers, KeepNoSizeOfAChunkThatHasNoEnd) {
  expect_status(post("Transfer-Encoding: chunked\r\n") + std::string(3'000'000, '0'), "400");
  expect_status(post("Transfer-Encoding: chunked\r\n") + "1;" + std::string(3'000'000, 'x'), "400");
  // after the last chunk there is nothing to wait for, as later versions of httplib see it
  EXPECT_TRUE(reply(post("Transfer-Encoding: chunked\r\n") + "1\r\na\r\n0\r\n" + std::string(3'000'000, 'x'))
                  .starts_with("HTTP/1.1 "));
}

class ImpatientServers : public HttpServers {
 protected:
  ImpatientServers() : HttpServers({.head_seconds = 1, .request_seconds = 2}) {}
};

TEST_F(ImpatientServers, EndRequestsThatAreTooSlow) {
  expect_status("GET /hel", "408");
  expect_status(post("Content-Length: 3\r\n") + "a", "408");
}

TEST_F(HttpServers, LivesOnAfterWhatIsNoRequest) {
  for (const std::string& text : {std::string("\r\n\r\n"), std::string("x\r\n\r\n"), std::string(5, '\0') + "\r\n\r\n",
                                  std::string("GET\r\n\r\n"), std::string("GET / HTTP/1.1\nHost\n\n"),
                                  std::string("POST /echo HTTP/1.1\r\nContent-Type: text/plain\r\nTransfer-Encoding: "
                                              "chunked\r\n\r\nzz\r\n")})
    EXPECT_FALSE(reply(text).starts_with("HTTP/1.1 200")) << text;
  expect_status("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", "200");
}

TEST_F(HttpServers, StreamsPieceByPiece) {
  Client client(server_.port());
  client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(client.receive("first\n").find("first\n"), std::string::npos) << "while the rest is not made yet";
  is_let_go_ = true;
  EXPECT_NE(client.receive().find("last\n"), std::string::npos);
}

TEST_F(HttpServers, SeesThatNobodyReadsAStream) {
  {
    Client client(server_.port());
    client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n").receive("first\n");
  }
  while (n_streams_ == 0) std::this_thread::yield();
  EXPECT_FALSE(was_read_);
}

class CrowdedServers : public HttpServers {
 protected:
  CrowdedServers() : HttpServers({.connections = 3}) {}
};

TEST_F(CrowdedServers, RefuseMoreConnectionsThanTheyHave) {
  std::vector<std::unique_ptr<Client>> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(std::make_unique<Client>(server_.port()));
    held.back()->send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n").receive("first\n");
  }
  expect_status("", "503", "too many connections");
  is_let_go_ = true;
  for (const auto& client : held) client->receive();
}

TEST_F(CrowdedServers, SendWhoSendsNoHeadAwayForOthers) {
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(std::make_unique<Client>(server_.port()));
    slow.back()->send("GET /hel");
  }
  expect_status("", "503", "too many connections");  // nobody has been slow yet
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  expect_status("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", "200");
  EXPECT_EQ(slow[0]->receive(), "") << "who came first has gone";
  slow[1]->send("lo HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(slow[1]->receive().starts_with("HTTP/1.1 200")) << "the next one has not";
}

TEST_F(CrowdedServers, SendWhoSendsNoBodyAwayForOthers) {
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(std::make_unique<Client>(server_.port()));
    slow.back()->send(post("Content-Length: 3\r\n") + "a");
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  expect_status("", "503", "too many connections");  // a body may take longer than a head
  slow[0]->send("b");                                // nor does a piece of it keep its place
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  expect_status("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", "200");
  EXPECT_FALSE(slow[0]->receive().starts_with("HTTP/1.1 200")) << "who came first has gone";
  slow[1]->send("bc");
  EXPECT_NE(slow[1]->receive().find("got abc"), std::string::npos) << "the next one has not";
}

TEST_F(CrowdedServers, KeepWhoWaitsForAReply) {
  std::vector<std::unique_ptr<Client>> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(std::make_unique<Client>(server_.port()));
    held.back()->send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n").receive("first\n");
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(2200));
  expect_status("", "503", "too many connections");
  is_let_go_ = true;
  for (const auto& client : held) EXPECT_NE(client->receive().find("last\n"), std::string::npos);
}

class SharedServers : public HttpServers {
 protected:
  SharedServers() : HttpServers({.connections = 8, .peer_connections = 2}) {}
};

TEST_F(SharedServers, LeaveRoomForOtherAddresses) {
  std::vector<std::unique_ptr<Client>> held;
  for (int i = 0; i < 2; ++i) {
    held.push_back(std::make_unique<Client>(server_.port()));
    held.back()->send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n").receive("first\n");
  }
  expect_status("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", "503");
  Client other(server_.port(), "127.0.0.2");
  EXPECT_TRUE(other.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n").receive().starts_with("HTTP/1.1 200"));
  is_let_go_ = true;
  for (const auto& client : held) client->receive();
}

TEST_F(HttpServers, RefusesHeadersThatReadersUnderstandDifferently) {
  for (const char* header :
       {"X-Key : wrong", "X-Key\t: wrong", "X Key: wrong", "X-Key: a\r\n wrong", "X-Key: a\r\n\twrong"})
    expect_status(cat("GET /hello HTTP/1.1\r\nHost: x\r\n", header, "\r\n\r\n"), "400", "header");
  EXPECT_EQ(n_heads_, 0);
  expect_status("GET /hello HTTP/1.1\r\nHost: x\r\nX-Key:  a b : c \r\n\r\n", "200");
}

TEST_F(HttpServers, EndsWhileItStreams) {
  Client client(server_.port());
  client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n").receive("first\n");
  server_.stop();
  client.receive();
  while (n_streams_ == 0) std::this_thread::yield();
}

TEST(HttpAddresses, ThatAreTakenOrUnknownAreRefused) {
  const HttpServer first("127.0.0.1", 0);
  EXPECT_GT(first.port(), 0);
  EXPECT_THROW(HttpServer("127.0.0.1", first.port()), ConfigError);
  EXPECT_THROW(HttpServer("no.such.host.invalid", 0), ConfigError);
}

}  // namespace
}  // namespace lancet::testing
