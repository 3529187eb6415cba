#include "bound_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <system_error>
#include <thread>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr int kWaitingConnections = 64;

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses addresses_of(const std::string& host, int64_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int problem = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (problem != 0)
    throw ConfigError(cat("--host ", host, ": expected an address of this machine: ", ::gai_strerror(problem)));
  return {found, &::freeaddrinfo};
}

int bind_to(const addrinfo& address) {
  const int descriptor = ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol);
  if (descriptor < 0) return -1;
  const int on = 1;
  ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(descriptor, address.ai_addr, address.ai_addrlen) == 0 && ::listen(descriptor, kWaitingConnections) == 0)
    return descriptor;
  const int why = errno;
  ::close(descriptor);
  errno = why;
  return -1;
}

int64_t port_of(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return address.ss_family == AF_INET6 ? ntohs(reinterpret_cast<sockaddr_in6&>(address).sin6_port)
                                       : ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
}

}  // namespace

BoundSocket::BoundSocket(const std::string& host, int64_t port) {
  const Addresses addresses = addresses_of(host, port);
  for (const addrinfo* one = addresses.get(); one != nullptr && descriptor_ < 0; one = one->ai_next)
    descriptor_ = bind_to(*one);
  if (descriptor_ < 0)
    throw ConfigError(cat("--host ", host, " --port ", port, ": cannot listen there: ",
                          std::generic_category().message(errno), ": expected a free port (0: any)"));
  port_ = port_of(descriptor_);
}

BoundSocket::~BoundSocket() { ::close(descriptor_); }

int BoundSocket::accept(int wake) const {
  for (;;) {
    std::array<pollfd, 2> polled{{{descriptor_, POLLIN, 0}, {wake, POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;  // a signal
    if (polled[1].revents != 0) return -1;
    const int connection = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection >= 0) return connection;
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until others end
  }
}

}  // namespace lancet
