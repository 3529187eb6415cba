#include "lancet/runtime/cpu.h"

#include <ATen/Parallel.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInstructions[] = {"avx2", "avx512f", "avx512_bf16", "amx_bf16"};

int64_t allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

/// Returns the limit that a container sees as its own: at the root of its control groups.
std::optional<double> quota_of(const fs::path& root) {
  double quota = 0, period = 0;
  if (std::ifstream file(root / "sys/fs/cgroup/cpu.max"); file >> quota >> period) return quota / period;  // version 2
  std::ifstream quota_file(root / "sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_file(root / "sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

/// Returns the text after "key : " in the first processor's block of /proc/cpuinfo.
std::string field(const fs::path& root, std::string_view key) {
  std::ifstream file(root / "proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (const size_t colon = line.find(": "); line.starts_with(key) && colon != std::string::npos)
      return line.substr(colon + 2);
  return {};
}

}  // namespace

CpuFacts read_cpu(const fs::path& root) {
  CpuFacts cpu{field(root, "model name"), allowed_cores(), quota_of(root), {}, at::get_num_threads()};
  std::istringstream words(field(root, "flags"));
  std::vector<std::string> flags;
  for (std::string flag; words >> flag;) flags.push_back(flag);
  for (const char* wanted : kInstructions)
    if (std::find(flags.begin(), flags.end(), wanted) != flags.end()) cpu.instructions.emplace_back(wanted);
  return cpu;
}

}  // namespace lancet
