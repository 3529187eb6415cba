// Both libraries come with the driver and not with torch, so they are opened by name at run time. libcuda knows the
// GPUs as the process sees them. The management library (NVML) knows the machine's numbering. The PCI address relates
// the two, also for parts of a GPU (MIG).
#include "lancet/runtime/gpu_driver.h"

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// The management library reports more memory for a GPU than CUDA, because it counts the part for error correction.
constexpr double kSameGpu = 1.15;

/// Calls the library's function `name` of type F; returns nullopt if it has none.
template <typename F, typename... Arguments>
std::optional<int> call(const SymbolSource& library, const char* name, Arguments... arguments) {
  auto* function = reinterpret_cast<F*>(library(name));
  if (function == nullptr) return std::nullopt;
  return static_cast<int>(function(arguments...));
}

template <typename F, typename... Arguments>
bool succeeds(const SymbolSource& library, const char* name, Arguments... arguments) {
  return call<F>(library, name, arguments...) == 0;
}

/// Functions of the management library's interface, version 2. Handles are opaque; 0 means success.
using NvmlHandle = void*;
using NvmlPlain = int();
using NvmlText = int(char*, unsigned);
using NvmlCount = int(unsigned*);
using NvmlByAddress = int(const char*, NvmlHandle*);
using NvmlIndex = int(NvmlHandle, unsigned*);
struct NvmlMemory {
  unsigned long long total, free, used;
};
using NvmlMemoryInfo = int(NvmlHandle, NvmlMemory*);

void add_physical(const SymbolSource& management, GpuDriver& driver) {
  if (!management || !succeeds<NvmlPlain>(management, "nvmlInit_v2")) return;
  std::array<char, 96> version{};
  if (succeeds<NvmlText>(management, "nvmlSystemGetDriverVersion", version.data(), 96U))
    driver.version = version.data();
  unsigned count = 0;
  if (succeeds<NvmlCount>(management, "nvmlDeviceGetCount_v2", &count)) driver.physical_gpus = count;
  for (GpuIdentity& gpu : driver.gpus) {
    NvmlHandle handle = nullptr;
    if (!succeeds<NvmlByAddress>(management, "nvmlDeviceGetHandleByPciBusId_v2", gpu.pci_bus_id.c_str(), &handle))
      continue;
    unsigned index = 0;
    if (succeeds<NvmlIndex>(management, "nvmlDeviceGetIndex", handle, &index)) gpu.physical_index = index;
    // for a part of a GPU (MIG), the address gives the memory of the whole GPU
    NvmlMemory memory{};
    if (succeeds<NvmlMemoryInfo>(management, "nvmlDeviceGetMemoryInfo", handle, &memory) &&
        static_cast<double>(memory.total) < kSameGpu * static_cast<double>(gpu.total_bytes))
      gpu.free_bytes = static_cast<int64_t>(memory.free);
  }
  succeeds<NvmlPlain>(management, "nvmlShutdown");
}

/// Returns "GPU-%02x...": groups of 4, 2, 2, 2 and 6 bytes, as nvidia-smi prints them.
std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    std::array<char, 4> hex{};
    std::snprintf(hex.data(), hex.size(), "%02x", static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    text += cat(i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", hex.data());
  }
  return text;
}

GpuIdentity read_gpu(const SymbolSource& cuda, CUdevice device, int64_t index) {
  GpuIdentity gpu;
  gpu.index = index;
  std::array<char, 128> text{};
  if (succeeds<decltype(cuDeviceGetName)>(cuda, "cuDeviceGetName", text.data(), 128, device)) gpu.name = text.data();
  if (succeeds<decltype(cuDeviceGetPCIBusId)>(cuda, "cuDeviceGetPCIBusId", text.data(), 128, device))
    gpu.pci_bus_id = text.data();
  CUuuid uuid{};
  if (succeeds<CUresult(CUuuid*, CUdevice)>(cuda, "cuDeviceGetUuid_v2", &uuid, device) ||
      succeeds<CUresult(CUuuid*, CUdevice)>(cuda, "cuDeviceGetUuid", &uuid, device))
    gpu.uuid = uuid_text(uuid);
  size_t bytes = 0;
  if (succeeds<CUresult(size_t*, CUdevice)>(cuda, "cuDeviceTotalMem_v2", &bytes, device))
    gpu.total_bytes = static_cast<int64_t>(bytes);
  int major = 0, minor = 0;
  const auto attribute = [&](int* value, CUdevice_attribute which) {
    return succeeds<decltype(cuDeviceGetAttribute)>(cuda, "cuDeviceGetAttribute", value, which, device);
  };
  if (attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) &&
      attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR))
    gpu.capability = major * 10 + minor;
  return gpu;
}

void add_gpus(const SymbolSource& cuda, GpuDriver& driver) {
  int version = 0;
  if (succeeds<decltype(cuDriverGetVersion)>(cuda, "cuDriverGetVersion", &version)) driver.cuda_version = version;
  int count = 0;
  std::optional<int> result = call<decltype(cuInit)>(cuda, "cuInit", 0U);
  if (result == 0) result = call<decltype(cuDeviceGetCount)>(cuda, "cuDeviceGetCount", &count);
  if (result != 0) driver.problem = result ? cuda_error_text(cuda, *result) : "not a library of NVIDIA's driver";
  std::vector<CUdevice> devices;
  for (int index = 0; index < count; ++index) {
    CUdevice device = 0;
    if (!succeeds<decltype(cuDeviceGet)>(cuda, "cuDeviceGet", &device, index)) continue;
    devices.push_back(device);
    driver.gpus.push_back(read_gpu(cuda, device, index));
  }
  for (size_t i = 0; i < devices.size(); ++i)
    for (size_t j = i + 1; j < devices.size(); ++j) {
      int there = 0, back = 0;
      const bool is_known =
          succeeds<decltype(cuDeviceCanAccessPeer)>(cuda, "cuDeviceCanAccessPeer", &there, devices[i], devices[j]) &&
          succeeds<decltype(cuDeviceCanAccessPeer)>(cuda, "cuDeviceCanAccessPeer", &back, devices[j], devices[i]);
      if (is_known && (there == 0 || back == 0))
        driver.no_peer.emplace_back(driver.gpus[i].index, driver.gpus[j].index);
    }
}

}  // namespace

SymbolSource open_library(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  // stays open, because the driver's threads use it
  return [library](const char* symbol) { return ::dlsym(library, symbol); };
}

std::string cuda_error_text(const SymbolSource& cuda, int code) {
  const char *name = nullptr, *meaning = nullptr;
  const auto result = static_cast<CUresult>(code);
  succeeds<decltype(cuGetErrorName)>(cuda, "cuGetErrorName", result, &name);
  succeeds<decltype(cuGetErrorString)>(cuda, "cuGetErrorString", result, &meaning);
  return cat(name != nullptr ? name : "error", meaning != nullptr ? cat(": ", meaning) : cat(" ", code));
}

std::string device_name(int64_t index) { return cat("cuda:", index); }

std::string numbered_name(const std::string& device, const std::vector<GpuIdentity>& gpus) {
  for (const GpuIdentity& gpu : gpus)
    if (device_name(gpu.index) == device && gpu.physical_index && *gpu.physical_index != gpu.index)
      return cat(device, " (GPU ", *gpu.physical_index, ")");
  return device;
}

std::string label(const GpuIdentity& gpu) {
  std::string text = device_name(gpu.index) + " = ";
  text += gpu.physical_index ? cat("GPU ", *gpu.physical_index) : "a GPU of unknown number";
  if (!gpu.uuid.empty()) text += ", " + gpu.uuid;
  return gpu.name.empty() ? text : text + ", " + gpu.name;
}

GpuDriver read_gpu_driver() { return read_gpu_driver(open_library("libcuda.so.1"), open_library("libnvidia-ml.so.1")); }

GpuDriver read_gpu_driver(const SymbolSource& cuda, const SymbolSource& management) {
  GpuDriver driver;
  driver.is_there = static_cast<bool>(cuda);
  if (cuda) add_gpus(cuda, driver);
  add_physical(management, driver);
  return driver;
}

}  // namespace lancet
