#include "lancet/http/http_client.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "http_answer_reader.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/core/tcp_listener.h"

namespace lancet {
namespace {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

constexpr int64_t kLookEvery_ms = 200;  ///< time between two checks whether the work was cancelled

/// What failed, without the address.
class Trouble : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::string system_words(int error) { return std::strerror(error); }

class OpenSocket {
 public:
  explicit OpenSocket(int descriptor) : descriptor_(descriptor) {}
  ~OpenSocket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenSocket(const OpenSocket&) = delete;
  OpenSocket& operator=(const OpenSocket&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Waits until the socket can be written to, or read from. Throws: Trouble after `until`; Cancelled.
void wait_for(int socket, short events, Deadline until, const char* what) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) throw Trouble(cat("timed out: ", what));
    count_progress();
    pollfd polled{socket, events, 0};
    const int found = ::poll(&polled, 1, static_cast<int>(std::min<int64_t>(left, kLookEvery_ms)));
    if (found > 0) return;
    if (found < 0 && errno != EINTR) throw Trouble(system_words(errno));
  }
}

AddressList look_up(const HttpAddress& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int problem = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (problem != 0) throw Trouble(cat("its host is not found: ", ::gai_strerror(problem)));
  return AddressList(found);
}

/// Returns 0 if there is a connection, else the error number.
int try_to_connect(int socket, const addrinfo& address, Deadline until) {
  if (::connect(socket, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  wait_for(socket, POLLOUT, until, "there was no connection");
  int problem = 0;
  socklen_t length = sizeof(problem);
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &problem, &length) != 0) return errno;
  return problem;
}

std::unique_ptr<OpenSocket> connect_to(const HttpAddress& address, Deadline until) {
  const AddressList found = look_up(address);
  int problem = 0;
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    auto socket = std::make_unique<OpenSocket>(
        ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, each->ai_protocol));
    problem = socket->get() < 0 ? errno : try_to_connect(socket->get(), *each, until);
    if (problem == 0) return socket;
  }
  throw Trouble(cat("there was no connection: ", system_words(problem)));
}

/// Refuses text with line ends: in the first lines of a request, each value must stay on its line, whoever gave it.
void refuse_line_ends(std::string_view text, const char* what) {
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }))
    throw Trouble(cat("it was not asked: ", what, " has a control character in it"));
}

std::string request_text(const HttpAddress& address, const HttpQuestion& question) {
  refuse_line_ends(question.path, "its path");
  for (const auto& [name, value] : question.headers) {
    refuse_line_ends(name, "the name of a header");
    refuse_line_ends(value, "a header");
  }
  const std::string authority = address.text().substr(std::string_view("http://").size());
  std::string text = cat(question.method, " ", address.prefix, question.path,
                         " HTTP/1.1\r\nHost: ", authority.substr(0, authority.size() - address.prefix.size()),
                         "\r\nConnection: close\r\nAccept: application/json\r\n");
  if (question.method == "POST")
    text += cat("Content-Type: application/json\r\nContent-Length: ", question.body.size(), "\r\n");
  for (const auto& [name, value] : question.headers) text += cat(name, ": ", value, "\r\n");
  text += "\r\n";
  if (question.method == "POST") text += question.body;
  return text;
}

void send_all(int socket, std::string_view text, Deadline until) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent > 0)
      text.remove_prefix(static_cast<size_t>(sent));
    else if (errno == EAGAIN)
      wait_for(socket, POLLOUT, until, "the question was not taken");
    else if (errno != EINTR)
      throw Trouble(cat("the connection broke: ", system_words(errno)));
  }
}

HttpAnswer read_answer(int socket, const HttpQuestionLimits& limits, Deadline until) {
  HttpAnswerReader reader(limits);
  std::array<char, 16384> buffer{};
  while (!reader.is_complete()) {
    wait_for(socket, POLLIN, until, "there was no whole answer");
    const ssize_t got = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) throw Trouble(cat("the connection broke: ", system_words(errno)));
    if (got == 0) {
      reader.end();
      break;
    }
    reader.add({buffer.data(), static_cast<size_t>(got)});
  }
  return reader.take();
}

}  // namespace

HttpAnswer ask_http(const HttpAddress& address, const HttpQuestion& question, const HttpQuestionLimits& limits) {
  const Deadline until = Clock::now() + limits.whole;
  try {
    const std::string text = request_text(address, question);
    const std::unique_ptr<OpenSocket> socket = connect_to(address, std::min(until, Clock::now() + limits.connect));
    send_all(socket->get(), text, until);
    return read_answer(socket->get(), limits, until);
  } catch (const Cancelled&) {
    throw;
  } catch (const std::runtime_error& trouble) {
    throw ServerError(cat(address.text(), ": ", question.method, " ", question.path, ": ", trouble.what()));
  }
}

}  // namespace lancet
