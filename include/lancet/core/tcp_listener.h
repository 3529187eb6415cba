// What listening sockets share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct addrinfo;  // of <netdb.h>

namespace lancet {

struct FreeAddresses {
  void operator()(addrinfo* first) const;
};
using AddressList = std::unique_ptr<addrinfo, FreeAddresses>;

/// Returns the addresses of `host` to listen at. `problem` is 0, or an error code of gai_strerror(); then there is no
/// list.
AddressList own_addresses(const std::string& host, int64_t port, int& problem);

/// Returns a socket that listens at the address and is closed in started programs (close-on-exec). `backlog`: the
/// number of connections that may wait. Returns -1 on failure; errno says why.
int listen_at(const addrinfo& address, int backlog);

/// Returns the port of a socket. Throws: std::system_error.
int64_t port_of(int descriptor);

}  // namespace lancet
