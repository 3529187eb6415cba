#include "lancet/doctor/machine_facts.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/doctor/rates.h"
#include "lancet/kernels/own_kernels.h"
#include "lancet/runtime/memory.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

/// Calls `int name(int*)` of a library that torch loaded; returns 0 if there is none.
int version_by(const char* name) {
  auto* function = reinterpret_cast<int (*)(int*)>(::dlsym(RTLD_DEFAULT, name));
  int version = 0;
  return function != nullptr && function(&version) == 0 ? version : 0;
}

Versions read_versions() {
  Versions versions{kVersion, TORCH_VERSION, version_by("cudaRuntimeGetVersion"), {}, false};
  if (const int nccl = version_by("ncclGetVersion"); nccl > 0)
    versions.nccl = cat(nccl / 10000, ".", nccl / 100 % 100, ".", nccl % 100);
  // c10d::ProcessGroupGloo::createDefaultDevice(bool): torch can be built without Gloo
  versions.has_gloo = ::dlsym(RTLD_DEFAULT, "_ZN4c10d16ProcessGroupGloo19createDefaultDeviceEb") != nullptr;
  return versions;
}

bool file_says(const fs::path& path, std::string_view beginning) {
  std::ifstream file(path);
  std::string text;
  return file >> text && text.starts_with(beginning);
}

int64_t count_gpus_on_bus() {
  int64_t count = 0;
  std::error_code error;
  for (fs::directory_iterator entry("/sys/bus/pci/devices", error), end; !error && entry != end; entry.increment(error))
    count += file_says(entry->path() / "vendor", "0x10de") && file_says(entry->path() / "class", "0x03") ? 1 : 0;
  return count;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

bool resolves(const std::string& host) {
  addrinfo* addresses = nullptr;
  const bool found = ::getaddrinfo(host.c_str(), nullptr, nullptr, &addresses) == 0;
  if (addresses != nullptr) ::freeaddrinfo(addresses);
  return found;
}

std::optional<int64_t> limit_of(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<int64_t>(limit.rlim_cur);
}

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

void try_gpus(MachineFacts& facts) {
  try {
    for (const at::Device device : accelerators()) {
      ++facts.usable_gpus;
      if (const std::optional<DeviceMemory> memory = device_memory(device))
        facts.gpus.push_back({memory->total_bytes, memory->used_bytes});
      launcher_for(device, at::kBFloat16);  // compiles the kernels
    }
    facts.kernels = kernels_in_use();
    facts.copies = measure_copies();
  } catch (const std::exception& error) {
    facts.gpu_failure = first_line(error.what());
  }
}

void try_collectives(MachineFacts& facts) {
  try {
    facts.all_reduce = measure_all_reduce();
  } catch (const std::exception& error) {
    facts.all_reduce.failure = first_line(error.what());
  }
}

}  // namespace

FolderFacts look_at_folder(std::string role, const fs::path& folder) {
  FolderFacts facts;
  facts.role = std::move(role);
  std::error_code error;
  facts.path = fs::weakly_canonical(fs::absolute(folder, error), error);
  while (!fs::exists(facts.path, error) && facts.path.has_relative_path()) facts.path = facts.path.parent_path();
  struct stat status {};
  struct statvfs space {};
  if (::stat(facts.path.c_str(), &status) == 0) facts.file_system = status.st_dev;
  if (::statvfs(facts.path.c_str(), &space) == 0) {
    facts.free_bytes = static_cast<int64_t>(space.f_bavail * space.f_frsize);
    facts.total_bytes = static_cast<int64_t>(space.f_blocks * space.f_frsize);
  }
  facts.is_writable =
      S_ISDIR(status.st_mode) && ::faccessat(AT_FDCWD, facts.path.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
  return facts;
}

MachineFacts collect_machine_facts() {
  set_numerics();
  MachineFacts facts;
  facts.numerics = numerics();
  facts.host = host_name();
  facts.host_resolves = resolves(facts.host);
  std::error_code error;
  facts.has_infiniband = fs::exists("/sys/class/infiniband", error) && !fs::is_empty("/sys/class/infiniband", error);
  facts.versions = read_versions();
  facts.gpus_on_bus = count_gpus_on_bus();
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) facts.visible_devices = visible;
  facts.driver = read_gpu_driver();
  try_gpus(facts);
  try_collectives(facts);
  facts.cpu = read_cpu();
  facts.products = measure_products();
  facts.memory = host_memory();
  facts.folders.push_back(look_at_folder("current folder", "."));
  if (fs::exists("/dev/shm", error)) facts.folders.push_back(look_at_folder("/dev/shm", "/dev/shm"));
  facts.limits = {limit_of(RLIMIT_NOFILE), limit_of(RLIMIT_MEMLOCK), limit_of(RLIMIT_AS)};
  return facts;
}

}  // namespace lancet
