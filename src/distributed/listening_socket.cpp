#include "listening_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

namespace lancet {
namespace {

[[noreturn]] void fail(const char* call) { throw std::system_error(errno, std::generic_category(), call); }

std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> resolve(const std::string& address, int64_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int problem = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found); problem != 0)
    throw std::system_error(std::make_error_code(std::errc::address_not_available), ::gai_strerror(problem));
  return {found, &::freeaddrinfo};
}

}  // namespace

ListeningSocket::ListeningSocket(const std::string& address, int64_t port) {
  const auto target = resolve(address, port);
  descriptor_ = ::socket(target->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor_ < 0) fail("socket");
  const int on = 1;
  const bool listens = ::setsockopt(descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
                       ::bind(descriptor_, target->ai_addr, target->ai_addrlen) == 0 &&
                       ::listen(descriptor_, SOMAXCONN) == 0;
  if (listens) return;
  const int error_number = errno;
  ::close(descriptor_);
  errno = error_number;
  fail("listen");
}

ListeningSocket::~ListeningSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int64_t ListeningSocket::port() const {
  sockaddr_storage own{};
  socklen_t length = sizeof(own);
  if (::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&own), &length) != 0) fail("getsockname");
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                         : reinterpret_cast<const sockaddr_in&>(own).sin_port);
}

int ListeningSocket::release() { return std::exchange(descriptor_, -1); }

}  // namespace lancet
