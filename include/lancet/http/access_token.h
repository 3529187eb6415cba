// Secrets that a server generates when it starts.
#pragma once

#include <string>
#include <string_view>

namespace lancet {

/// Returns 128 bits of the system's random source as 32 hexadecimal digits. Throws: CheckpointError if the source
/// fails.
std::string make_access_token();

/// Compares two texts. The time depends on their lengths alone.
bool equal_in_constant_time(std::string_view one, std::string_view other);

}  // namespace lancet
