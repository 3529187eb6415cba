// What this host is called, and where others reach it.
#pragma once

#include <cstdint>
#include <string>

namespace lancet {

std::string host_name();

/// The address of this host on the way to `address`:`port`; nothing is sent. `address` itself where there is no way.
std::string address_towards(const std::string& address, int64_t port);

/// 127.0.0.0/8, ::1 and localhost.
bool is_loopback(const std::string& address);

}  // namespace lancet
