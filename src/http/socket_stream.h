// A connection as httplib reads and writes it, with the limits that httplib has not: bytes of a head, and deadlines
// that a sender of single bytes does not move.
#pragma once

#include <httplib.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "connection_guests.h"
#include "lancet/http/http_server.h"

namespace lancet {

class SocketStream final : public httplib::Stream {
 public:
  /// `wake`: can be read from once the server stops. `awaits` is told whenever that changes. Closes the socket.
  SocketStream(int socket, int wake, const HttpLimits& limits, std::function<void(Awaited)> awaits);
  ~SocketStream() override;
  SocketStream(const SocketStream&) = delete;
  SocketStream& operator=(const SocketStream&) = delete;

  bool is_readable() const override { return true; }
  /// Whether somebody is there still.
  bool is_writable() const override;
  ssize_t read(char* ptr, size_t size) override;
  ssize_t write(const char* ptr, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const;  // of later versions of httplib
  socket_t socket() const override { return socket_; }

  bool has_too_long_head() const { return is_head_too_long_; }
  bool was_too_slow() const { return is_too_slow_; }
  /// A folded header, or blanks in or after a header's name (RFC 9112, 5.1 and 5.2).
  bool has_bad_head() const { return is_head_bad_; }
  bool has_written() const { return has_written_; }
  /// That came, of head and body.
  int64_t bytes() const { return bytes_; }

  /// A whole reply without httplib.
  void write_plain(std::string_view reply);
  /// The reply arrives also where the request was not read to its end: what comes is thrown away for a moment, since
  /// closing earlier would take the reply away.
  void close_gently();

 private:
  using Time = std::chrono::steady_clock::time_point;

  bool wait_for(short events, Time until) const;
  bool fill();
  bool write_all(std::string_view text);
  void look_for_end_of_head();
  void look_at_header(char c);

  const int socket_;
  const int wake_;
  const HttpLimits limits_;
  const std::function<void(Awaited)> awaits_;
  const Time begun_ = std::chrono::steady_clock::now();
  std::array<char, 16384> buffer_{};
  size_t begin_ = 0, end_ = 0;  ///< bytes that were read from the socket and not by httplib
  int64_t bytes_ = 0;           ///< bytes that came in all
  int64_t head_bytes_ = 0;
  int line_bytes_ = 0;  ///< bytes of the head's last line so far
  int head_lines_ = 0;  ///< lines before it
  bool has_colon_ = false;
  bool is_head_over_ = false;
  bool is_head_too_long_ = false;
  bool is_head_bad_ = false;
  bool is_too_slow_ = false;
  bool has_written_ = false;
};

}  // namespace lancet
