// What `lancet doctor` looks at. Facts alone: what they mean is decided in doctor.h, so that tests can invent machines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lancet/runtime/cpu.h"
#include "lancet/runtime/gpu_driver.h"
#include "lancet/runtime/memory.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

struct Versions {
  std::string lancet;
  std::string torch;
  int64_t cuda_runtime = 0;  ///< the wheel's CUDA: 13000; 0: not loaded
  std::string nccl;          ///< "2.28.9"; empty: not loaded
  bool has_gloo = false;
};

/// A GPU's memory as torch finds it.
struct GpuMemory {
  int64_t total_bytes = 0;
  int64_t used_bytes = 0;
};

/// Measured with large blocks.
struct CopyRate {
  std::string from;
  std::string to;
  double bytes_per_s = 0;
};

/// Products of matrices, in floating-point operations per second.
struct ProductRates {
  double f32 = 0;
  double bf16 = 0;
};

/// Ranks of this process that summed a block together: one for each GPU where there are several, else two on the host.
struct ReduceRate {
  int64_t ranks = 0;
  std::string device;      ///< device of the first rank's block
  double bytes_per_s = 0;  ///< rate of each rank's block
  std::string failure;     ///< what went wrong; empty: nothing
};

enum class DeviceCheckKind {
  kBytes,       ///< bytes from the host to a device and back
  kProducts,    ///< products of matrices, against the host's
  kPair,        ///< bytes from one device to another
  kSplitModel,  ///< a forward pass through layers on all devices, against the host's
  kAllReduce    ///< a sum over ranks, one for each device
};

/// One check of what a device has to do in a job.
struct DeviceCheck {
  DeviceCheckKind kind = DeviceCheckKind::kBytes;
  std::vector<std::string> devices;  ///< devices that are checked; a pair: from, to
  std::string failure;               ///< what went wrong; empty: nothing
  double bytes_per_s = 0;            ///< rate of pairs and sums
};

/// A folder that is written to, or the nearest one above it that is there.
struct FolderFacts {
  std::string role;  ///< "current folder", "output", "cache", "/dev/shm"
  std::filesystem::path path;
  bool is_writable = false;
  uint64_t file_system = 0;    ///< equal for folders that share their space
  int64_t free_bytes = 0;      ///< bytes that this user may still write
  int64_t total_bytes = 0;     ///< size of the file system
  int64_t expected_bytes = 0;  ///< that the job will write there
};

/// Soft limits of the process; nullopt: none.
struct ProcessLimits {
  std::optional<int64_t> open_files;
  std::optional<int64_t> locked_bytes;
  std::optional<int64_t> address_bytes;
};

struct MachineFacts {
  std::string host;
  bool host_resolves = false;  ///< the host's own name has an address
  bool has_infiniband = false;
  Versions versions;
  int64_t gpus_on_bus = 0;                     ///< NVIDIA's, as the PCI bus tells, with or without a driver
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES
  GpuDriver driver;
  int64_t usable_gpus = 0;      ///< that torch can use
  std::string gpu_failure;      ///< what went wrong when they were tried
  std::vector<GpuMemory> gpus;  ///< memory of the usable GPUs
  std::vector<CopyRate> copies;
  ReduceRate all_reduce;
  std::optional<std::vector<DeviceCheck>> device_checks;  ///< nullopt: nobody asked for them
  Numerics numerics;                                      ///< numerics of a job on this machine
  std::optional<std::string> kernels;  ///< what GPUs' element-wise operations run as (kernels_in_use)
  CpuFacts cpu;
  ProductRates products;
  std::optional<HostMemory> memory;
  std::vector<FolderFacts> folders;
  ProcessLimits limits;
};

/// Looks at this machine; takes some seconds, for the rates. Never throws: what cannot be seen is left empty.
MachineFacts collect_machine_facts();

/// Looks at `folder`, which need not be there yet.
FolderFacts look_at_folder(std::string role, const std::filesystem::path& folder);

}  // namespace lancet
