// A connection in the form that httplib reads and writes, with limits that httplib lacks: the bytes of a head, and
// deadlines that a client cannot extend by sending single bytes.
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
  /// `wake`: can be read once the server stops. `awaits` is called whenever the awaited part changes. The destructor
  /// closes the socket.
  SocketStream(int socket, int wake, const HttpLimits& limits, std::function<void(Awaited)> awaits);
  ~SocketStream() override;
  SocketStream(const SocketStream&) = delete;
  SocketStream& operator=(const SocketStream&) = delete;

  bool is_readable() const override { return true; }
  /// Whether the client is still connected.
  bool is_writable() const override;
  ssize_t read(char* ptr, size_t size) override;
  ssize_t write(const char* ptr, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const;  // needed by later versions of httplib
  socket_t socket() const override { return socket_; }

  bool has_too_long_head() const { return is_head_too_long_; }
  bool was_too_slow() const { return is_too_slow_; }
  /// Whether there is a folded header, or blanks in or after a header's name (RFC 9112, 5.1 and 5.2).
  bool has_bad_head() const { return is_head_bad_; }
  bool has_written() const { return has_written_; }
  /// Returns the number of bytes that came, of head and body.
  int64_t bytes() const { return bytes_; }

  /// Writes a whole reply without httplib.
  void write_plain(std::string_view reply);
  /// Closes so that the reply arrives even if the request was not read to its end: further bytes are read and ignored
  /// for a moment, because the reply would be lost if the socket were closed earlier.
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
  size_t begin_ = 0, end_ = 0;  ///< bytes that were read from the socket, but not yet by httplib
  int64_t bytes_ = 0;           ///< number of all bytes that came
  int64_t head_bytes_ = 0;
  int line_bytes_ = 0;  ///< bytes of the head's last line so far
  int head_lines_ = 0;  ///< number of lines before it
  bool has_colon_ = false;
  bool is_head_over_ = false;
  bool is_head_too_long_ = false;
  bool is_head_bad_ = false;
  bool is_too_slow_ = false;
  bool has_written_ = false;
};

}  // namespace lancet
