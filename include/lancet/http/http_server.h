// HTTP on one address: connections, limits and deadlines. What a request means is its route's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lancet/http/http_message.h"

namespace lancet {

struct HttpRoute {
  std::string method = "GET";  ///< or "POST"
  std::string path = {};
  std::string body_type = {};                                ///< Content-Type that a POST must have; empty: any
  int64_t most_body_bytes = 0;                               ///< more is refused with 413, before it is read
  std::function<HttpReply(const HttpRequest&)> answer = {};  ///< runs on a connection's thread. Throws: lancet's errors
};

/// Makes the reply to a request that is not answered.
using RefusalWriter = std::function<HttpReply(const HttpRequest& request, const Refusal& refusal)>;

struct HttpLimits {
  /// Most connections at a time, and most of one peer's address; more get 503. Where there is no room, a connection
  /// that has not sent a whole request goes for a new one: the one longest at its head, and for half a second, else at
  /// its body, and for two.
  int64_t connections = 32;
  int64_t peer_connections = 24;
  int64_t head_bytes = 32768;                  ///< size of request line and headers; more get 431
  int64_t request_bytes = int64_t{40} << 20U;  ///< size of head and body, with what chunks add
  int64_t head_seconds = 5;                    ///< time until they are there
  int64_t request_seconds = 120;               ///< time until the body is there too
  int64_t write_seconds = 30;                  ///< time until a piece of the reply is taken
};

class HttpServer {
 public:
  /// Binds and listens. `host`: an address or a name of this machine's; `port`: 0 for a free one.
  /// Throws: ConfigError where that cannot be had.
  HttpServer(const std::string& host, int64_t port, HttpLimits limits = {});
  ~HttpServer();  ///< stop(), and waits for the connections' ends
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int64_t port() const;

  /// `guard` sees every request's head first. `headers` are those of every reply. `write_refusal` empty: error_reply().
  /// Before run().
  void serve(std::vector<HttpRoute> routes, std::function<std::optional<Refusal>(const HttpRequest&)> guard,
             const std::vector<std::pair<std::string, std::string>>& headers, RefusalWriter write_refusal = {});

  /// Answers requests until stop().
  void run();
  /// Takes no new connections and ends those that are open, streams too. Any thread may call it.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lancet
