// Secrets that a server makes up when it starts.
#pragma once

#include <string>
#include <string_view>

namespace lancet {

/// 128 bits of the system's random source as 32 hexadecimal digits. Throws: CheckpointError where it gives none.
std::string make_access_token();

/// How long it takes depends on the lengths alone.
bool equal_in_constant_time(std::string_view one, std::string_view other);

}  // namespace lancet
