#include "lancet/core/listening_socket.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "lancet/core/tcp_listener.h"

namespace lancet {

ListeningSocket::ListeningSocket(const std::string& address, int64_t port) {
  int problem = 0;
  const AddressList target = own_addresses(address, port, problem);
  if (problem != 0)
    throw std::system_error(std::make_error_code(std::errc::address_not_available), ::gai_strerror(problem));
  descriptor_ = listen_at(*target, SOMAXCONN);
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "listen");
}

ListeningSocket::~ListeningSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int64_t ListeningSocket::port() const { return port_of(descriptor_); }

int ListeningSocket::release() { return std::exchange(descriptor_, -1); }

}  // namespace lancet
