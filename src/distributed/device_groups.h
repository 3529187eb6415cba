// NCCL groups of a job's ranks. There is one for every set of devices that have a collective's tensors. It is made when
// it is first used.
#pragma once

#include <chrono>
#include <map>
#include <span>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Returns the GPU's own identity, which does not depend on how a process numbers GPUs; empty for devices that NCCL
/// does not support.
std::string nccl_identity(at::Device device);

/// Sets the process's environment for groups. To be called before any thread is started that makes one, of Gloo or
/// NCCL.
/// - NCCL's errors become exceptions of ours: by default a thread of torch's own would end the process, without our
///   exit code.
/// - Torch's flight recorder is off. All groups of a process write to one, which enters a new group into a map outside
///   of its lock (2.11, FlightRecorderDetail.hpp): ranks that are threads would crash there.
void set_environment_of_groups();

/// Makes a group. `store`: not shared with another group. `timeout`: of each operation. Throws: std::logic_error before
/// set_environment_of_groups(); c10::Error.
c10::intrusive_ptr<c10d::Backend> make_nccl_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                                  std::chrono::milliseconds timeout);

class DeviceGroups {
 public:
  DeviceGroups(c10::intrusive_ptr<c10d::Store> store, int rank, int size)
      : store_(std::move(store)), rank_(rank), size_(size) {}
  ~DeviceGroups();
  DeviceGroups(const DeviceGroups&) = delete;
  DeviceGroups& operator=(const DeviceGroups&) = delete;

  /// Collective. Returns the group of these devices (by rank); null if NCCL cannot serve them because one is not a GPU,
  /// or two ranks share one.
  c10d::Backend* group_of(std::span<const std::string> identities, std::chrono::milliseconds timeout);

 private:
  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  int size_;
  std::map<std::vector<std::string>, c10::intrusive_ptr<c10d::Backend>> groups_;
};

}  // namespace lancet
