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
  int64_t cores = 0;            ///< number of cores on which the process may run
  std::optional<double> quota;  ///< CPU time that the control group allows, as a number of cores; nullopt: no limit
  std::vector<std::string> instructions;  ///< those of "avx2", "avx512f", "avx512_bf16", "amx_bf16" that are available
  int64_t threads = 0;                    ///< number of threads that torch uses
};

/// Reads the facts. `root`: where /proc and /sys are.
CpuFacts read_cpu(const std::filesystem::path& root = "/");

}  // namespace lancet
