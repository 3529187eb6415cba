// Tensors that go through the staging buffers.
#include <gtest/gtest.h>

#include <filesystem>

#include "fake_tensors.h"
#include "lancet/core/error.h"
#include "lancet/models/tensor_io.h"
#include "support/fake_device.h"
#include "support/temp_dir.h"

namespace lancet::testing {
namespace {

/// Longer than a staging buffer (32 MiB), in f32 and in f64, and not a multiple of it.
constexpr int64_t kLong = 9'000'001;

TEST(TensorReader, FillsDevicesThroughItsStagingBuffers) {
  testing::set_fake_device_count(testing::kMaxFakeDevices);
  const TempDir folder;
  torch::manual_seed(3);
  const std::vector<Tensor> stored{torch::randn({kLong}), torch::randn({3, 5}), torch::empty({0}),
                                   torch::randn({kLong}), torch::randn({7})};
  std::vector<TensorSource> sources;
  for (const Tensor& tensor : stored) sources.push_back(to_source(std::to_string(sources.size()), tensor));
  write_safetensors(folder / "f", sources, {});
  const SafetensorsReader file = SafetensorsReader::open(folder / "f");
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    std::vector<TensorRead> reads;
    for (size_t i = 0; i < stored.size(); ++i)
      reads.push_back({file.view(std::to_string(i)), fake(static_cast<int>(i % 2)), type});
    const std::vector<Tensor> tensors = read_tensors(reads, [](int64_t) {});
    ASSERT_EQ(tensors.size(), stored.size());
    for (size_t i = 0; i < stored.size(); ++i) {
      EXPECT_EQ(tensors[i].device(), reads[i].device);
      EXPECT_TRUE(torch::equal(tensors[i].to(kHost), stored[i].to(type))) << i;
    }
  }
}

TEST(Upload, KeepsTheStridesAndGoesThroughTheStagingBuffers) {
  testing::set_fake_device_count(testing::kMaxFakeDevices);
  torch::manual_seed(3);
  const Tensor large = torch::randn({3001, 3000}, torch::kDouble);  // 72 MB, of buffers of 32 MiB
  for (const Tensor& tensor : {large, large.t(), large.slice(1, 0, 2999, 2), torch::randn({7}), torch::empty({0, 4})}) {
    const FakeWork before = fake_work();
    const Tensor there = upload(tensor, fake(1));
    const auto buffers = (static_cast<int64_t>(tensor.nbytes()) + (32 << 20) - 1) / (32 << 20);
    EXPECT_EQ((fake_work() - before).uploads, buffers);
    EXPECT_EQ(there.device(), fake(1));
    if (tensor.is_non_overlapping_and_dense()) {
      EXPECT_EQ(there.strides(), tensor.strides());
    }
    EXPECT_TRUE(torch::equal(there.to(kHost), tensor));
  }
  EXPECT_TRUE(upload(large, kHost).is_same(large));
  const Tensor there = upload(large.narrow(0, 0, 3), fake(0));
  EXPECT_TRUE(upload(there, fake(0)).is_same(there));
}

TEST(TensorReader, SaysThatAFileForADeviceWasCut) {
  const TempDir folder;
  const Tensor stored = torch::randn({kLong});
  const std::vector<TensorSource> sources{to_source("w", stored)};
  write_safetensors(folder / "f", sources, {});
  const SafetensorsReader file = SafetensorsReader::open(folder / "f");
  std::filesystem::resize_file(folder / "f", 33 << 20);  // the first buffer is full and on its way
  const std::vector<TensorRead> reads{{file.view("w"), fake(0), at::kFloat}};
  EXPECT_THROW(read_tensors(reads, [](int64_t) {}), CheckpointError);
}

}  // namespace
}  // namespace lancet::testing
