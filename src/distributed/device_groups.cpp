#include "device_groups.h"

#include <ATen/cuda/CUDAContext.h>

#include <algorithm>
#include <set>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "lancet/core/strings.h"

namespace lancet {

std::string nccl_identity(at::Device device) {
  if (!device.is_cuda()) return {};
  const cudaDeviceProp* properties = at::cuda::getDeviceProperties(device.index());
  return {properties->uuid.bytes, sizeof(properties->uuid.bytes)};
}

c10::intrusive_ptr<c10d::Backend> make_nccl_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                                  std::chrono::milliseconds timeout) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, std::move(options));
}

DeviceGroups::~DeviceGroups() {
  // abort, not shutdown: shutdown waits for operations, which after a failure never end
  for (auto& [devices, group] : groups_) static_cast<c10d::ProcessGroupNCCL&>(*group).abort();
}

c10d::Backend* DeviceGroups::group_of(std::span<const std::string> identities, std::chrono::milliseconds timeout) {
  const std::set<std::string> distinct(identities.begin(), identities.end());
  if (distinct.size() != identities.size() || distinct.contains("")) return nullptr;
  auto& group = groups_[{identities.begin(), identities.end()}];
  if (!group) {
    const std::string prefix = cat("nccl/", groups_.size());
    group = make_nccl_group(c10::make_intrusive<c10d::PrefixStore>(prefix, store_), rank_, size_, timeout);
  }
  return group.get();
}

}  // namespace lancet
