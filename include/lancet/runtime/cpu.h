// What the host's processor offers to this process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lancet {

struct CpuFacts {
  std::string model;
  int64_t cores = 0;                      ///< that the process may run on
  std::optional<double> quota;            ///< cores' worth of time that the control group allows; nullopt: no limit
  std::vector<std::string> instructions;  ///< those that there are of "avx2", "avx512f", "avx512_bf16", "amx_bf16"
  int64_t threads = 0;                    ///< that torch uses
};

/// `root`: where /proc and /sys lie.
CpuFacts read_cpu(const std::filesystem::path& root = "/");

}  // namespace lancet
