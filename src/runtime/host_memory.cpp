// Control groups: version 2 has one tree under /sys/fs/cgroup, version 1 one for memory in a folder of its own. Every
// folder from the process's group up to the root may set a limit; in a container the process's own path may name a
// folder of the host that is not there, and then the root stands for it.
#include "lancet/runtime/host_memory.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

namespace lancet {
namespace {

namespace fs = std::filesystem;

/// "Key:   123 kB" of a file of /proc, in bytes.
std::optional<int64_t> kilobytes_of(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return std::stoll(line.substr(key.size())) * 1024;
  return std::nullopt;
}

/// nullopt: no such file, or "max".
std::optional<int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

/// The names that the two versions of control groups give to the same things.
struct GroupFiles {
  const char* folder;
  const char* mark;  ///< mark between the colons of the group's line in /proc/self/cgroup
  const char* limit;
  const char* usage;
  const char* cache_keys[2];
};

constexpr GroupFiles kVersions[] = {
    {"sys/fs/cgroup", "::", "memory.max", "memory.current", {"inactive_file", "active_file"}},
    {"sys/fs/cgroup/memory",
     ":memory:",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
};

/// "/user.slice/job" of the line "4:memory:/user.slice/job".
std::string group_path(const fs::path& root, const GroupFiles& version) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (const size_t at = line.find(version.mark); at != std::string::npos)
      return line.substr(at + std::string_view(version.mark).size());
  return "/";
}

int64_t cached_bytes(const fs::path& group, const GroupFiles& version) {
  std::ifstream file(group / "memory.stat");
  int64_t cached = 0;
  std::string key;
  for (int64_t bytes = 0; file >> key >> bytes;)
    if (key == version.cache_keys[0] || key == version.cache_keys[1]) cached += bytes;
  return cached;
}

/// Lowers `memory` to the limits of one group.
void apply_limit(const fs::path& group, const GroupFiles& version, HostMemory& memory) {
  const std::optional<int64_t> limit = number_in(group / version.limit), usage = number_in(group / version.usage);
  if (!limit || *limit <= 0) return;
  if (*limit < memory.total_bytes) {
    memory.total_bytes = *limit;
    memory.limit_bytes = *limit;
  }
  if (usage)
    memory.available_bytes =
        std::min(memory.available_bytes, std::max<int64_t>(0, *limit - *usage + cached_bytes(group, version)));
}

}  // namespace

std::optional<HostMemory> host_memory(const fs::path& root) {
  const std::optional<int64_t> total = kilobytes_of(root / "proc/meminfo", "MemTotal:");
  const std::optional<int64_t> available = kilobytes_of(root / "proc/meminfo", "MemAvailable:");
  if (!total || !available) return std::nullopt;
  HostMemory memory{*total, *available, {}};
  for (const GroupFiles& version : kVersions) {
    const fs::path top = root / version.folder;
    fs::path group = top / fs::path(group_path(root, version)).relative_path();
    for (; group != top && group.has_relative_path(); group = group.parent_path()) apply_limit(group, version, memory);
    apply_limit(top, version, memory);
  }
  return memory;
}

int64_t resident_peak_bytes() { return kilobytes_of("/proc/self/status", "VmHWM:").value_or(0); }

void reset_resident_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

}  // namespace lancet
