// Facts from NVIDIA's driver itself, even if torch cannot use it: which GPUs exist, which GPU of the machine the
// process's GPU N is, and which CUDA version the driver supports.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lancet {

/// A GPU as this process sees it.
struct GpuIdentity {
  int64_t index = 0;                      ///< N of cuda:N; CUDA_VISIBLE_DEVICES changes it
  std::optional<int64_t> physical_index;  ///< its number in nvidia-smi
  std::string uuid;                       ///< "GPU-5a1c...", the same everywhere
  std::string pci_bus_id;                 ///< "0000:3B:00.0"
  std::string name;                       ///< "NVIDIA H100 80GB HBM3"
  int64_t total_bytes = 0;
  int64_t capability = 0;  ///< compute capability, major * 10 + minor: 90
  /// Free memory according to the management library, which needs no context on the GPU.
  std::optional<int64_t> free_bytes;
};

/// Returns "cuda:0", the name of the process's GPU in run.devices.
std::string device_name(int64_t index);

/// Returns "cuda:0 = GPU 3, GPU-5a1c..., NVIDIA H100 80GB HBM3".
std::string label(const GpuIdentity& gpu);

/// Returns "cuda:0 (GPU 3)" if the process's GPU 0 is the machine's GPU 3; "cuda:0" if the numbers agree or are
/// unknown.
std::string numbered_name(const std::string& device, const std::vector<GpuIdentity>& gpus);

struct GpuDriver {
  bool is_there = false;                 ///< its library was found
  std::string problem;                   ///< why it reports no GPUs, in its own words; empty: it works
  std::string version;                   ///< "580.65.06"; empty: unknown
  int64_t cuda_version = 0;              ///< newest version that it supports: 13000; 0: unknown
  std::optional<int64_t> physical_gpus;  ///< number of GPUs, including those that CUDA_VISIBLE_DEVICES hides
  std::vector<GpuIdentity> gpus;         ///< GPUs by index
  std::vector<std::pair<int64_t, int64_t>> no_peer;  ///< pairs of GPUs whose copies go through the host's memory
};

/// Finds a function of a library by name; returns null if the library does not have it. An empty std::function means
/// that there is no such library.
using SymbolSource = std::function<void*(const char* name)>;

/// Opens a library by `path` or by the system's search; returns an empty source if there is none. The library stays
/// open.
SymbolSource open_library(const std::string& path);

/// Reads the facts from the machine's libcuda.so.1 and libnvidia-ml.so.1. Never throws.
GpuDriver read_gpu_driver();
/// Reads the facts from other libraries with these functions.
GpuDriver read_gpu_driver(const SymbolSource& cuda, const SymbolSource& management);

/// Returns the text for an error code of libcuda: "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected".
std::string cuda_error_text(const SymbolSource& cuda, int code);

}  // namespace lancet
