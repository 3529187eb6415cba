// httplib's parser and writer, used with lancet's own stream.
#pragma once

#include "socket_stream.h"

namespace lancet {

class HttpExchange final : public httplib::Server {
 public:
  explicit HttpExchange(int listening) { svr_sock_ = listening; }  // a stream ends if there is no server socket
  ~HttpExchange() override { svr_sock_ = INVALID_SOCKET; }

  /// Handles one request: the unread rest of a refused one must not be taken as the next request. It is a template
  /// because later versions of httplib also need the addresses of both ends.
  template <typename Stream>
  void run(Stream& stream) {
    bool is_closed = false;
    // Every reply is whole. httplib would cut a range out of it, and leave the status at 200 (RFC 9110, 14.2 allows
    // both).
    const std::function<void(httplib::Request&)> whole = [](httplib::Request& request) { request.ranges.clear(); };
    if constexpr (requires { this->process_request(stream, true, is_closed, whole); })
      this->process_request(stream, true, is_closed, whole);
    else
      this->process_request(stream, "", 0, "", 0, true, is_closed, whole);
  }

  void end_streams() { svr_sock_ = INVALID_SOCKET; }
};

}  // namespace lancet
