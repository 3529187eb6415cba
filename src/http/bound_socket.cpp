#include "bound_socket.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/core/tcp_listener.h"

namespace lancet {
namespace {

constexpr int kWaitingConnections = 64;

}  // namespace

BoundSocket::BoundSocket(const std::string& host, int64_t port) {
  int problem = 0;
  const AddressList addresses = own_addresses(host, port, problem);
  if (problem != 0)
    throw ConfigError(cat("--host ", host, ": expected an address of this machine: ", ::gai_strerror(problem)));
  for (const addrinfo* one = addresses.get(); one != nullptr && descriptor_ < 0; one = one->ai_next)
    descriptor_ = listen_at(*one, kWaitingConnections);
  if (descriptor_ < 0)
    throw ConfigError(cat("--host ", host, " --port ", port, ": cannot listen there: ",
                          std::generic_category().message(errno), ": expected a free port (0: any)"));
  port_ = port_of(descriptor_);
}

BoundSocket::~BoundSocket() { ::close(descriptor_); }

int BoundSocket::accept(int wake) const {
  for (;;) {
    std::array<pollfd, 2> polled{{{descriptor_, POLLIN, 0}, {wake, POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;  // interrupted by a signal
    if (polled[1].revents != 0) return -1;
    const int connection = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection >= 0) return connection;
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
      // no descriptors are left: waits until other connections end
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace lancet
