// NVIDIA's driver as it answers for itself, also where torch cannot use it: which GPUs there are, which of the
// machine's GPUs the process's number N is, what the driver is able to run.
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
  std::optional<int64_t> physical_index;  ///< nvidia-smi's number of it
  std::string uuid;                       ///< "GPU-5a1c...", the same everywhere
  std::string pci_bus_id;                 ///< "0000:3B:00.0"
  std::string name;                       ///< "NVIDIA H100 80GB HBM3"
  int64_t total_bytes = 0;
  int64_t capability = 0;             ///< compute capability, major * 10 + minor: 90
  std::optional<int64_t> free_bytes;  ///< free memory as the management library says, without a context on the GPU
};

/// "cuda:0": how run.devices names the process's GPU.
std::string device_name(int64_t index);

/// "cuda:0 = GPU 3, GPU-5a1c..., NVIDIA H100 80GB HBM3".
std::string label(const GpuIdentity& gpu);

/// "cuda:0 (GPU 3)" where the process's GPU 0 is the machine's GPU 3; "cuda:0" where the numbers agree or nobody tells.
std::string numbered_name(const std::string& device, const std::vector<GpuIdentity>& gpus);

struct GpuDriver {
  bool is_there = false;                             ///< its library was found
  std::string problem;                               ///< why it gives no GPUs, in its own words; empty: it works
  std::string version;                               ///< "580.65.06"; empty: unknown
  int64_t cuda_version = 0;                          ///< newest that it can run: 13000; 0: unknown
  std::optional<int64_t> physical_gpus;              ///< number of GPUs, also those that CUDA_VISIBLE_DEVICES hides
  std::vector<GpuIdentity> gpus;                     ///< GPUs by index
  std::vector<std::pair<int64_t, int64_t>> no_peer;  ///< pairs whose copies go through the host's memory
};

/// Finds a function of a library by name; null: it has none of that name. An empty one: there is no such library.
using SymbolSource = std::function<void*(const char* name)>;

/// Opens a library that the system's search, or `path`, finds; an empty source: there is none. It stays open.
SymbolSource open_library(const std::string& path);

/// The machine's libcuda.so.1 and libnvidia-ml.so.1. Never throws.
GpuDriver read_gpu_driver();
/// Reads it from any libraries with these functions.
GpuDriver read_gpu_driver(const SymbolSource& cuda, const SymbolSource& management);

/// "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected", of a code that one of libcuda's functions gave.
std::string cuda_error_text(const SymbolSource& cuda, int code);

}  // namespace lancet
