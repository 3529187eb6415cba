// httplib's parser and writer, on a stream of ours.
#pragma once

#include "socket_stream.h"

namespace lancet {

class HttpExchange final : public httplib::Server {
 public:
  explicit HttpExchange(int listening) { svr_sock_ = listening; }  // streams end where there is none
  ~HttpExchange() override { svr_sock_ = INVALID_SOCKET; }

  /// One request: what was not read of a refused one must not be taken for the next. A template, since later versions
  /// of httplib want both ends' addresses too.
  template <typename Stream>
  void run(Stream& stream) {
    bool is_closed = false;
    // Every reply is whole: httplib would cut a range out of it, and leave its status at 200 (RFC 9110, 14.2 allows
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
