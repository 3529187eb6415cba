#include "lancet/runtime/memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <gtest/gtest.h>

namespace lancet {
namespace {

/// Counts from its first use on, and like CUDA's throws when it is asked before.
class FakeDeviceAllocator final : public c10::DeviceAllocator {
 public:
  bool is_used = false;

  c10::DataPtr allocate(size_t /*bytes*/) override { return {}; }
  void copy_data(void* /*to*/, const void* /*from*/, size_t /*bytes*/) const override {}
  bool initialized() override { return is_used; }
  void emptyCache(c10::MempoolId_t /*pool*/) override {}
  void recordStream(const c10::DataPtr& /*data*/, c10::Stream /*stream*/) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex /*device*/) override {
    TORCH_CHECK(is_used, "Allocator not initialized for device 0: did you call init?");
    constexpr auto kAggregate = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.reserved_bytes[kAggregate].current = 30;
    stats.allocated_bytes[kAggregate].current = 10;
    stats.allocated_bytes[kAggregate].peak = 25;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex /*device*/) override {}
  void resetPeakStats(c10::DeviceIndex /*device*/) override {}
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex /*device*/) override { return {60, 100}; }
};

TEST(DeviceMemoryOf, ADeviceThatTorchHasNotUsedYet) {
  FakeDeviceAllocator allocator;
  const DeviceMemory memory = device_memory(allocator, 0);
  EXPECT_EQ(memory.total_bytes, 100);
  EXPECT_EQ(memory.used_bytes, 40);
  EXPECT_EQ(memory.peak_bytes, 0);
}

TEST(DeviceMemoryOf, ADeviceCountsAsFreeWhatTheAllocatorKeeps) {
  FakeDeviceAllocator allocator;
  allocator.is_used = true;
  const DeviceMemory memory = device_memory(allocator, 0);
  EXPECT_EQ(memory.used_bytes, 20);
  EXPECT_EQ(memory.peak_bytes, 25);
}

TEST(DeviceMemoryOf, TheHostIsKnown) { EXPECT_GT(device_memory(at::kCPU).value().total_bytes, 0); }

}  // namespace
}  // namespace lancet
