// What sockets that listen have in common.
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

/// Addresses to listen at that `host` names. `problem`: 0, or an error of gai_strerror(), and there is no list.
AddressList own_addresses(const std::string& host, int64_t port, int& problem);

/// A socket that listens there, closed in programs that are started. `backlog`: connections that may wait. -1: errno
/// says why there is none.
int listen_at(const addrinfo& address, int backlog);

/// Throws: std::system_error.
int64_t port_of(int descriptor);

}  // namespace lancet
