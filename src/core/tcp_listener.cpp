#include "lancet/core/tcp_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace lancet {

void FreeAddresses::operator()(addrinfo* first) const { ::freeaddrinfo(first); }

AddressList own_addresses(const std::string& host, int64_t port, int& problem) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  problem = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return AddressList(found);
}

int listen_at(const addrinfo& address, int backlog) {
  const int descriptor = ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol);
  if (descriptor < 0) return -1;
  const int on = 1;
  if (::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
      ::bind(descriptor, address.ai_addr, address.ai_addrlen) == 0 && ::listen(descriptor, backlog) == 0)
    return descriptor;
  const int why = errno;
  ::close(descriptor);
  errno = why;
  return -1;
}

int64_t port_of(int descriptor) {
  sockaddr_storage own{};
  socklen_t length = sizeof(own);
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &length) != 0)
    throw std::system_error(errno, std::generic_category(), "getsockname");
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                         : reinterpret_cast<const sockaddr_in&>(own).sin_port);
}

}  // namespace lancet
