// Runs out of memory on a real GPU: torch's allocator is told to take no more than a test allows.
#include <c10/cuda/CUDACachingAllocator.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/runtime/memory.h"
#include "lancet/training/values.h"
#include "support/edit_setup.h"
#include "support/on_device.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

/// Cap on this process's tensors on the GPU, until it ends.
class MemoryCap {
 public:
  explicit MemoryCap(at::Device device) : device_(device), total_bytes_(device_memory(device).value().total_bytes) {}
  ~MemoryCap() { allocator::setMemoryFraction(1.0, device_.index()); }
  MemoryCap(const MemoryCap&) = delete;
  MemoryCap& operator=(const MemoryCap&) = delete;

  void set(int64_t bytes) {
    allocator::emptyCache();
    allocator::setMemoryFraction(static_cast<double>(bytes) / static_cast<double>(total_bytes_), device_.index());
  }

 private:
  at::Device device_;
  int64_t total_bytes_;
};

class MemoryOnDevice : public testing::OnDevice {
 protected:
  void SetUp() override {
    testing::OnDevice::SetUp();
    if (IsSkipped()) return;
    if (!device().is_cuda()) GTEST_SKIP() << "only a GPU's allocator can be given a limit";
    torch::ones({1}, torch::TensorOptions().device(device()));  // the allocator knows no device before its first tensor
  }
};
LANCET_ON_EACH_DEVICE(MemoryOnDevice);

/// Takes what is free in the blocks that the allocator has, from large to small pieces.
std::vector<Tensor> fill(at::Device device) {
  std::vector<Tensor> taken;
  for (int64_t bytes = 16 << 20; bytes >= 512; bytes /= 2) {
    try {
      for (;;) taken.push_back(torch::empty({bytes}, torch::TensorOptions(torch::kByte).device(device)));
    } catch (const c10::OutOfMemoryError&) {  // smaller ones may fit
    }
  }
  return taken;
}

TEST_P(MemoryOnDevice, WhatTheAllocatorThrowsIsKnown) {
  MemoryCap cap(device());
  cap.set(64 << 20);
  const auto options = torch::TensorOptions(torch::kByte).device(device());
  try {
    torch::empty({256 << 20}, options);
    FAIL() << "256 MiB of 64 MiB were given";
  } catch (const std::exception& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what();
  }
  EXPECT_EQ(torch::ones({1 << 20}, options).sum().item<int64_t>(), 1 << 20);  // the device works on
}

TEST_P(MemoryOnDevice, ABatchThatDoesNotFitIsHalvedToTheSameValues) {
  const testing::TinyModel tiny({.d_model = 256, .d_ffn = 768});
  const CausalLM model = tiny.load(at::kDouble, {device()});
  const std::vector<PreparedRequest> requests =
      prepare_requests(*tiny.tokenizer, testing::some_requests(128), testing::kContexts);
  const ValueOptions options{.steps = 3, .lr = 0.1, .batch = 128};
  const auto optimise = [&] { return optimize_values(model, requests, 1, options, {alone()}); };
  MemoryCap cap(device());
  optimise();  // libraries have their work space
  allocator::emptyCache();
  reset_peak(device());
  const auto loaded = allocator::getDeviceStats(device().index()).allocated_bytes[0].current;
  const OptimizedValues roomy = optimise();
  const int64_t most = device_memory(device())->peak_bytes - loaded;
  EXPECT_EQ(roomy.batching.halvings, 0);
  EXPECT_GT(most, int64_t{64} << 20) << "too little beside the blocks that the allocator takes";

  cap.set(loaded + most * 2 / 3);
  const OptimizedValues tight = optimise();
  EXPECT_GE(tight.batching.halvings, 1);
  EXPECT_LT(tight.batching.largest, roomy.batching.largest);
  EXPECT_LE(testing::nmse(tight.z_ND, roomy.z_ND), 1e-18);

  cap.set(loaded);
  const std::vector<Tensor> rest = fill(device());
  try {
    optimise();
    FAIL() << "values were found without memory";
  } catch (const std::exception& error) {
    EXPECT_TRUE(dynamic_cast<const PlacementError*>(&error) != nullptr || is_out_of_memory(error)) << error.what();
  }
}

}  // namespace
}  // namespace lancet
