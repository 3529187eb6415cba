#include "device_groups.h"

#include <ATen/cuda/CUDAContext.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string_view>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Variables that torch reads when it makes a group.
constexpr std::array<std::pair<const char*, const char*>, 4> kEnvironmentOfGroups{
    {{"TORCH_NCCL_BLOCKING_WAIT", "1"},
     {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"},
     {"TORCH_NCCL_ENABLE_MONITORING", "0"},
     {"TORCH_FR_BUFFER_SIZE", "0"}}};

}  // namespace

std::string nccl_identity(at::Device device) {
  if (!device.is_cuda()) return {};
  const cudaDeviceProp* properties = at::cuda::getDeviceProperties(device.index());
  return {properties->uuid.bytes, sizeof(properties->uuid.bytes)};
}

void set_environment_of_groups() {
  for (const auto& [name, value] : kEnvironmentOfGroups) ::setenv(name, value, /*overwrite=*/1);
}

c10::intrusive_ptr<c10d::Backend> make_nccl_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                                  std::chrono::milliseconds timeout) {
  for (const auto& [name, value] : kEnvironmentOfGroups) {
    const char* now = std::getenv(name);
    if (now == nullptr || std::string_view(now) != value)
      throw std::logic_error(
          cat("a group of NCCL is made before set_environment_of_groups(): ", name, " is not ", value));
  }
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, std::move(options));
}

DeviceGroups::~DeviceGroups() {
  // abort, not shutdown: shutdown waits for operations, which never end after a failure
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
