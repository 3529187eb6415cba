// An HTTP server at one address: connections, limits and deadlines. Routes decide what a request does.
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
  std::string body_type = {};   ///< Content-Type that a POST must have; empty: any
  int64_t most_body_bytes = 0;  ///< a larger body is refused with 413 before it is read
  /// Runs on a connection's thread. Throws: lancet's errors.
  std::function<HttpReply(const HttpRequest&)> answer = {};
};

/// Makes the reply to a refused request.
using RefusalWriter = std::function<HttpReply(const HttpRequest& request, const Refusal& refusal)>;

struct HttpLimits {
  /// Most connections in total, and most from one peer's address; further ones get 503. If there is no room, a new
  /// connection replaces one that has not sent its whole request: the oldest one that is still sending its head, after
  /// half a second; else the oldest one that is still sending its body, after two seconds.
  int64_t connections = 32;
  int64_t peer_connections = 24;
  int64_t head_bytes = 32768;                  ///< size of the request line and the headers; larger ones get 431
  int64_t request_bytes = int64_t{40} << 20U;  ///< size of head and body, with the framing of chunks
  int64_t head_seconds = 5;                    ///< time until the head is complete
  int64_t request_seconds = 120;               ///< time until the body is complete too
  int64_t write_seconds = 30;                  ///< time until a piece of the reply is accepted
};

class HttpServer {
 public:
  /// Binds and listens. `host`: an address or a name of this machine. `port`: 0 for any free one. Throws: ConfigError
  /// if it cannot listen there.
  HttpServer(const std::string& host, int64_t port, HttpLimits limits = {});
  ~HttpServer();  ///< calls stop() and waits until all connections have ended
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int64_t port() const;

  /// Sets what is served; call it before run(). `guard` gets the head of every request first. `headers` are added to
  /// every reply. An empty `write_refusal` means error_reply().
  void serve(std::vector<HttpRoute> routes, std::function<std::optional<Refusal>(const HttpRequest&)> guard,
             const std::vector<std::pair<std::string, std::string>>& headers, RefusalWriter write_refusal = {});

  /// Answers requests until stop().
  void run();
  /// Accepts no new connections and ends the open ones, streams included. May be called from any thread.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lancet
