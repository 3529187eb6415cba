#include "socket_stream.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace lancet {
namespace {

using Clock = std::chrono::steady_clock;

/// How long, and how many bytes, are still read from a request that was refused before its end.
constexpr std::chrono::seconds kGentleSeconds{2};
constexpr size_t kGentleBytes = size_t{64} << 20U;

}  // namespace

SocketStream::SocketStream(int socket, int wake, const HttpLimits& limits, std::function<void(Awaited)> awaits)
    : socket_(socket), wake_(wake), limits_(limits), awaits_(std::move(awaits)) {}

SocketStream::~SocketStream() { ::close(socket_); }

/// Returns false after `until`, when the server stops, and if the connection is broken.
bool SocketStream::wait_for(short events, Time until) const {
  for (;;) {
    // rounded up, so that a wait that ends because of time ends after `until`
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    std::array<pollfd, 2> polled{{{socket_, events, 0}, {wake_, POLLIN, 0}}};
    const int found = ::poll(polled.data(), polled.size(), static_cast<int>(std::min<int64_t>(left, 60000)));
    if (found < 0 && errno != EINTR) return false;
    if (found <= 0) continue;
    if (polled[1].revents != 0 && events == POLLIN) return false;  // replies that are ready are still sent
    if (polled[0].revents != 0) return true;
  }
}

bool SocketStream::is_writable() const {
  std::array<pollfd, 2> polled{{{socket_, POLLRDHUP, 0}, {wake_, POLLIN, 0}}};
  return ::poll(polled.data(), polled.size(), 0) == 0;
}

bool SocketStream::fill() {
  const auto longest = std::chrono::seconds(is_head_over_ ? limits_.request_seconds : limits_.head_seconds);
  awaits_(is_head_over_ ? Awaited::kBody : Awaited::kHead);
  for (;;) {
    if (!wait_for(POLLIN, begun_ + longest)) {
      is_too_slow_ = Clock::now() >= begun_ + longest;
      return false;
    }
    const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return false;
    bytes_ += got;
    if (bytes_ > limits_.request_bytes) return false;
    begin_ = 0;
    end_ = static_cast<size_t>(got);
    look_for_end_of_head();
    if (is_head_over_) awaits_(Awaited::kNothing);  // nothing is read after the request
    return !is_head_too_long_ && !is_head_bad_;
  }
}

void SocketStream::look_for_end_of_head() {
  for (size_t i = 0; i < end_ && !is_head_over_; ++i) {
    is_head_too_long_ = ++head_bytes_ > limits_.head_bytes;
    if (is_head_too_long_) return;
    if (buffer_[i] == '\n') {
      is_head_over_ = line_bytes_ == 0 && head_bytes_ > 2;
      head_lines_ += line_bytes_ > 0 ? 1 : 0;
      line_bytes_ = 0;
      has_colon_ = false;
    } else if (buffer_[i] != '\r') {
      if (head_lines_ > 0) look_at_header(buffer_[i]);
      ++line_bytes_;
    }
  }
}

void SocketStream::look_at_header(char c) {
  is_head_bad_ = is_head_bad_ || (!has_colon_ && (c == ' ' || c == '\t'));
  has_colon_ = has_colon_ || c == ':';
}

ssize_t SocketStream::read(char* ptr, size_t size) {
  if (begin_ == end_ && !fill())
    return is_head_too_long_ || is_head_bad_ || is_too_slow_ || bytes_ > limits_.request_bytes ? -1 : 0;
  const size_t given = std::min(size, end_ - begin_);
  std::memcpy(ptr, buffer_.data() + begin_, given);
  begin_ += given;
  return static_cast<ssize_t>(given);
}

bool SocketStream::write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      text.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN || !wait_for(POLLOUT, Clock::now() + std::chrono::seconds(limits_.write_seconds))) return false;
  }
  return true;
}

ssize_t SocketStream::write(const char* ptr, size_t size) {
  if (!has_written_ && (is_head_too_long_ || is_head_bad_ || is_too_slow_))
    return static_cast<ssize_t>(size);  // write_plain() sends the reply instead
  has_written_ = true;
  return write_all({ptr, size}) ? static_cast<ssize_t>(size) : -1;
}

void SocketStream::get_remote_ip_and_port(std::string& /*ip*/, int& port) const { port = 0; }
void SocketStream::get_local_ip_and_port(std::string& /*ip*/, int& port) const { port = 0; }

void SocketStream::write_plain(std::string_view reply) { write_all(reply); }

void SocketStream::close_gently() {
  awaits_(Awaited::kBody);
  ::shutdown(socket_, SHUT_WR);
  const Time until = Clock::now() + kGentleSeconds;
  for (size_t thrown_away = 0; thrown_away < kGentleBytes && wait_for(POLLIN, until);) {
    const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return;
    thrown_away += static_cast<size_t>(got);
  }
}

}  // namespace lancet
