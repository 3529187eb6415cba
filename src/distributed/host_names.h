// This host's name, and the address at which others reach it.
#pragma once

#include <cstdint>
#include <string>

namespace lancet {

std::string host_name();

/// Returns the address of this host on the route to `address`:`port`, without sending anything; `address` itself if
/// there is no route.
std::string address_towards(const std::string& address, int64_t port);

/// Whether it is in 127.0.0.0/8, or ::1 or localhost.
bool is_loopback(const std::string& address);

}  // namespace lancet
