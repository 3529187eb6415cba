// The facts that `lancet doctor` collects. doctor.h judges them, so tests can make up machines.
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
  int64_t cuda_runtime = 0;  ///< the CUDA version of the torch wheel: 13000; 0: not loaded
  std::string nccl;          ///< "2.28.9"; empty: not loaded
  bool has_gloo = false;
};

/// A GPU's memory as torch reports it.
struct GpuMemory {
  int64_t total_bytes = 0;
  int64_t used_bytes = 0;
};

/// The rate of a copy, measured with large blocks.
struct CopyRate {
  std::string from;
  std::string to;
  double bytes_per_s = 0;
};

/// The rates of matrix products, in floating-point operations per second.
struct ProductRates {
  double f32 = 0;
  double bf16 = 0;
};

/// The rate of an all-reduce over ranks in this process: one rank per GPU if there are several, else two ranks on the
/// host.
struct ReduceRate {
  int64_t ranks = 0;
  std::string device;      ///< device of the first rank's block
  double bytes_per_s = 0;  ///< rate for the block of each rank
  std::string failure;     ///< the error; empty: none
};

enum class DeviceCheckKind {
  kBytes,       ///< copies bytes from the host to a device and back
  kProducts,    ///< compares matrix products with the host's
  kPair,        ///< copies bytes from one device to another
  kSplitModel,  ///< compares a forward pass through layers on all devices with the host's
  kAllReduce    ///< sums over ranks, one rank per device
};

/// The result of one check of what a job needs from devices.
struct DeviceCheck {
  DeviceCheckKind kind = DeviceCheckKind::kBytes;
  std::vector<std::string> devices;  ///< devices that are checked; for a pair: from, to
  std::string failure;               ///< the error; empty: none
  double bytes_per_s = 0;            ///< rate of a pair or a sum
};

/// A folder that is written to, or its nearest existing parent folder.
struct FolderFacts {
  std::string role;  ///< "current folder", "output", "cache", "/dev/shm"
  std::filesystem::path path;
  bool is_writable = false;
  uint64_t file_system = 0;    ///< equal for folders on the same file system
  int64_t free_bytes = 0;      ///< bytes that this user can still write
  int64_t total_bytes = 0;     ///< size of the file system
  int64_t expected_bytes = 0;  ///< bytes that the job will write there
};

/// The soft limits of the process; nullopt: no limit.
struct ProcessLimits {
  std::optional<int64_t> open_files;
  std::optional<int64_t> locked_bytes;
  std::optional<int64_t> address_bytes;
};

struct MachineFacts {
  std::string host;
  bool host_resolves = false;  ///< whether the host's own name resolves to an address
  bool has_infiniband = false;
  Versions versions;
  int64_t gpus_on_bus = 0;                     ///< NVIDIA GPUs on the PCI bus, with or without a driver
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES
  GpuDriver driver;
  int64_t usable_gpus = 0;      ///< GPUs that torch can use
  std::string gpu_failure;      ///< the error when torch tried to use the GPUs
  std::vector<GpuMemory> gpus;  ///< memory of the usable GPUs
  std::vector<CopyRate> copies;
  ReduceRate all_reduce;
  std::optional<std::vector<DeviceCheck>> device_checks;  ///< nullopt: the checks were not requested
  Numerics numerics;                                      ///< numerics of a job on this machine
  std::optional<std::string> kernels;                     ///< how GPUs run element-wise operations (kernels_in_use)
  CpuFacts cpu;
  ProductRates products;
  std::optional<HostMemory> memory;
  std::vector<FolderFacts> folders;
  ProcessLimits limits;
};

/// Collects the facts of this machine. Takes some seconds, because it measures rates. Never throws: what cannot be
/// determined is left empty.
MachineFacts collect_machine_facts();

/// Collects the facts of `folder`, which need not exist.
FolderFacts look_at_folder(std::string role, const std::filesystem::path& folder);

}  // namespace lancet
