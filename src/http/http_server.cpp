// httplib reads requests and writes replies. Sockets, threads and limits are lancet's own, because httplib's server
// would read a body that is too large to its end, and has no limit for chunked bodies. Its thread pool must also stay
// unused: torch's library exports another version of that class under the same name.
#include "lancet/http/http_server.h"

#include <malloc.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "bound_socket.h"
#include "connection_guests.h"
#include "http_exchange.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lower_case.h"
#include "socket_stream.h"

namespace lancet {
namespace {

constexpr int64_t kMuchBytes = int64_t{1} << 20U;

using Headers = std::vector<std::pair<std::string, std::string>>;

HttpRequest parsed_message(const httplib::Request& request) {
  HttpRequest message{.method = request.method, .path = request.path};
  for (const auto& [name, value] : request.params) message.query.emplace(name, value);
  for (const auto& [name, value] : request.headers) message.headers.emplace(lower_case(name), value);
  return message;
}

std::string plain_reply(const std::string& status, std::string_view message) {
  const std::string body = error_reply(0, message).body;
  return cat("HTTP/1.1 ", status, "\r\nContent-Type: application/json\r\nContent-Length: ", body.size(),
             "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n", body);
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const std::string& host, int64_t port, HttpLimits limits)
      : socket_(host, port),
        wake_(::eventfd(0, EFD_CLOEXEC)),
        limits_(limits),
        exchange_(socket_.descriptor()),
        guests_(limits) {
    if (wake_ < 0) throw ConfigError("cannot make an eventfd");
  }

  ~Impl() {
    stop();
    for (std::thread& thread : threads_) thread.join();
    for (const int connection : waiting_) ::close(connection);  // no thread has taken them
    ::close(wake_);
  }

  int64_t port() const { return socket_.port(); }

  void serve(std::vector<HttpRoute> routes, std::function<std::optional<Refusal>(const HttpRequest&)> guard,
             const Headers& headers, RefusalWriter write_refusal) {
    routes_ = std::move(routes);
    guard_ = std::move(guard);
    if (write_refusal) write_refusal_ = std::move(write_refusal);
    exchange_.set_default_headers({headers.begin(), headers.end()});
    exchange_.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) { return look_at(request, response); });
    for (const HttpRoute& route : routes_)
      if (route.method == "POST")
        exchange_.Post(route.path, [this, &route](const httplib::Request& request, httplib::Response& response,
                                                  const httplib::ContentReader& reader) {
          read_and_answer(route, request, response, reader);
        });
  }

  void run() {
    for (int64_t i = 0; i < limits_.connections; ++i)
      threads_.emplace_back(std::thread([this] { take_connections(); }));
    for (int connection = socket_.accept(wake_); connection >= 0; connection = socket_.accept(wake_)) {
      const std::lock_guard lock(mutex_);
      if (guests_.enter(connection)) {
        waiting_.push_back(connection);
        one_came_.notify_one();
        continue;
      }
      const std::string reply = plain_reply("503 Service Unavailable", "too many connections: close a page, or wait");
      static_cast<void>(!::send(connection, reply.data(), reply.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
      ::close(connection);
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
    }
    exchange_.end_streams();
    const uint64_t one = 1;
    static_cast<void>(!::write(wake_, &one, sizeof(one)));
    one_came_.notify_all();
  }

 private:
  void take_connections() {
    for (;;) {
      int connection = -1;
      {
        std::unique_lock lock(mutex_);
        one_came_.wait(lock, [this] { return is_stopped_ || !waiting_.empty(); });
        if (is_stopped_) return;
        connection = waiting_.front();
        waiting_.pop_front();
      }
      answer(connection);
    }
  }

  void answer(int connection) {
    SocketStream stream(connection, wake_, limits_, [this, connection](Awaited awaited) {
      const std::lock_guard lock(mutex_);
      guests_.note(connection, awaited);
    });
    {
      const std::lock_guard lock(mutex_);
      streams_[std::this_thread::get_id()] = &stream;
    }
    exchange_.run(stream);
    // the memory of what was made of them is also returned to the system
    if (stream.bytes() > kMuchBytes) ::malloc_trim(0);
    if (!stream.has_written()) {
      if (stream.has_bad_head())
        stream.write_plain(plain_reply("400 Bad Request", "a header has blanks in its name, or is folded"));
      else if (stream.has_too_long_head())
        stream.write_plain(
            plain_reply("431 Request Header Fields Too Large",
                        cat("request line and headers: expected at most ", limits_.head_bytes, " bytes")));
      else if (stream.was_too_slow())
        stream.write_plain(plain_reply("408 Request Timeout", "the request did not arrive in time"));
    }
    stream.close_gently();
    const std::lock_guard lock(mutex_);
    streams_.erase(std::this_thread::get_id());
    // before the stream closes the socket, whose number may then belong to another connection
    guests_.leave(connection);
  }

  /// Returns the request with a function that tells whether its sender still waits, because httplib gives no stream to
  /// handlers.
  HttpRequest message_of(const httplib::Request& request) {
    HttpRequest message = parsed_message(request);
    const std::lock_guard lock(mutex_);
    message.is_awaited = [stream = streams_.at(std::this_thread::get_id())] { return stream->is_writable(); };
    return message;
  }

  /// Decides everything except what depends on the body, before the body is read.
  httplib::Server::HandlerResponse look_at(const httplib::Request& request, httplib::Response& response) {
    const HttpRequest message = message_of(request);
    try {
      std::optional<Refusal> refusal = guard_(message);
      const HttpRoute* route = refusal ? nullptr : find_route(message, refusal);
      if (route != nullptr && route->method == "POST") refusal = refuse_body(*route, message);
      if (refusal) {
        put(write_refusal_(message, *refusal), response);
      } else if (route->method == "POST") {
        return httplib::Server::HandlerResponse::Unhandled;
      } else {
        put(answer_of(*route, message), response);
      }
    } catch (const std::exception& error) {
      put(write_refusal_(message, {500, error.what()}), response);
    }
    return httplib::Server::HandlerResponse::Handled;
  }

  const HttpRoute* find_route(const HttpRequest& request, std::optional<Refusal>& refusal) const {
    const HttpRoute* other = nullptr;
    for (const HttpRoute& route : routes_) {
      if (route.path != request.path) continue;
      if (route.method == request.method) return &route;
      other = &route;
    }
    if (other != nullptr)
      refusal = Refusal{405, cat(excerpt(request.method, 20), ": expected ", other->method)};
    else
      refusal = Refusal{404, "there is nothing at this address"};
    return nullptr;
  }

  static std::optional<Refusal> refuse_body(const HttpRoute& route, const HttpRequest& request) {
    if (!request.header("content-encoding").empty()) return Refusal{415, "Content-Encoding: expected a body as it is"};
    const std::string type = request.header("content-type");
    if (!route.body_type.empty() && lower_case(type.substr(0, type.find(';'))) != route.body_type)
      return Refusal{415, cat("Content-Type '", excerpt(type, 60), "': expected ", route.body_type)};
    if (request.headers.contains("transfer-encoding")) {
      if (lower_case(request.header("transfer-encoding")) != "chunked" || request.headers.contains("content-length"))
        return Refusal{400, "Transfer-Encoding: expected chunked, without Content-Length"};
      return std::nullopt;
    }
    const std::optional<int64_t> length = parse_whole_number(request.header("content-length"));
    if (request.headers.count("content-length") != 1 || !length || *length < 0)
      return Refusal{411, "Content-Length: expected the body's bytes"};
    if (*length > route.most_body_bytes) return too_large(route);
    return std::nullopt;
  }

  static Refusal too_large(const HttpRoute& route) {
    return {413,
            cat("the body is too large: expected at most ", bytes_text(static_cast<uint64_t>(route.most_body_bytes)))};
  }

  void read_and_answer(const HttpRoute& route, const httplib::Request& request, httplib::Response& response,
                       const httplib::ContentReader& reader) {
    HttpRequest message = message_of(request);
    // refuse_body() has limited it; growing the text piece by piece would take twice the memory
    if (const std::optional<int64_t> length = parse_whole_number(message.header("content-length")))
      message.body.reserve(static_cast<size_t>(*length));
    bool is_too_large = false;
    const bool is_whole = reader([&](const char* data, size_t size) {
      is_too_large = message.body.size() + size > static_cast<size_t>(route.most_body_bytes);
      if (!is_too_large) message.body.append(data, size);
      return !is_too_large;
    });
    if (is_too_large) return put(write_refusal_(message, too_large(route)), response);
    if (!is_whole) return put(write_refusal_(message, {400, "the body did not come to its end"}), response);
    put(answer_of(route, message), response);
  }

  HttpReply answer_of(const HttpRoute& route, const HttpRequest& request) const {
    try {
      return route.answer(request);
    } catch (const Error& error) {
      return write_refusal_(request, {error.exit_code() == ExitCode::kConfig ? 400 : 500, error.what()});
    } catch (const std::exception& error) {
      return write_refusal_(request, {500, error.what()});
    }
  }

  static void put(HttpReply reply, httplib::Response& response) {
    response.status = reply.status;
    for (const auto& [name, value] : reply.headers) response.set_header(name.c_str(), value);
    if (!reply.stream) return response.set_content(reply.body, reply.type.c_str());
    response.set_chunked_content_provider(
        reply.type.c_str(), [stream = std::move(reply.stream)](size_t, httplib::DataSink& sink) {
          stream({.write = [&](std::string_view text) { return sink.write(text.data(), text.size()); },
                  .is_read = [&] { return sink.is_writable(); }});
          sink.done();
          return true;
        });
  }

  BoundSocket socket_;
  const int wake_;
  const HttpLimits limits_;
  std::vector<HttpRoute> routes_;
  std::function<std::optional<Refusal>(const HttpRequest&)> guard_;
  RefusalWriter write_refusal_ = [](const HttpRequest&, const Refusal& refusal) {
    return error_reply(refusal.status, refusal.message);
  };
  HttpExchange exchange_;
  std::mutex mutex_;
  std::condition_variable one_came_;
  std::deque<int> waiting_;  ///< accepted connections that wait for a thread
  ConnectionGuests guests_;
  std::map<std::thread::id, const SocketStream*> streams_;  ///< the connection that each thread serves now
  bool is_stopped_ = false;
  std::vector<std::thread> threads_;
};

HttpServer::HttpServer(const std::string& host, int64_t port, HttpLimits limits)
    : impl_(std::make_unique<Impl>(host, port, limits)) {}
HttpServer::~HttpServer() = default;
int64_t HttpServer::port() const { return impl_->port(); }
void HttpServer::serve(std::vector<HttpRoute> routes, std::function<std::optional<Refusal>(const HttpRequest&)> guard,
                       const std::vector<std::pair<std::string, std::string>>& headers, RefusalWriter write_refusal) {
  impl_->serve(std::move(routes), std::move(guard), headers, std::move(write_refusal));
}
void HttpServer::run() { impl_->run(); }
void HttpServer::stop() { impl_->stop(); }

}  // namespace lancet
