// The host's memory as this process may use it: the machine's, or what a container's limit leaves of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace lancet {

struct HostMemory {
  int64_t total_bytes = 0;             ///< the machine's, or the limit where that is lower
  int64_t available_bytes = 0;         ///< room for new tensors; cached files count as available
  std::optional<int64_t> limit_bytes;  ///< the control group's, where it is below the machine's memory
};

/// `root`: where /proc and /sys lie; tests put their own there. nullopt when the system does not say.
std::optional<HostMemory> host_memory(const std::filesystem::path& root = "/");

/// The most memory that lay in this process's pages since reset_resident_peak(), or since it began.
int64_t resident_peak_bytes();
/// Resets the peak; where the system does not allow it, the peak stays that of the whole run.
void reset_resident_peak();

}  // namespace lancet
