// Reads a file to a device through the staging buffers: the file's bytes arrive.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstring>
#include <filesystem>

#include "lancet/core/error.h"
#include "lancet/models/tensor_io.h"
#include "support/on_device.h"
#include "support/temp_dir.h"

namespace lancet {
namespace {

using testing::TempDir;

class StagingOnDevice : public testing::OnDevice {};
LANCET_ON_EACH_DEVICE(StagingOnDevice);

/// Longer than a staging buffer (32 MiB) in f32, and not a multiple of it.
constexpr int64_t kLong = 9'000'001;

std::vector<Tensor> stored_tensors() {
  std::vector<Tensor> all;
  for (const int64_t size : {kLong, int64_t{15}, int64_t{0}, kLong, int64_t{7}})
    all.push_back(testing::numbers({size}, 3 + all.size()).to(all.size() % 2 == 0 ? at::kFloat : at::kBFloat16));
  return all;
}

SafetensorsReader write_file(const TempDir& folder, const std::vector<Tensor>& stored) {
  std::vector<TensorSource> sources;
  for (const Tensor& tensor : stored) sources.push_back(to_source(std::to_string(sources.size()), tensor));
  write_safetensors(folder / "f", sources, {});
  return SafetensorsReader::open(folder / "f");
}

TEST_P(StagingOnDevice, GivesTheFilesBytes) {
  const TempDir folder;
  const std::vector<Tensor> stored = stored_tensors();
  const SafetensorsReader file = write_file(folder, stored);
  std::vector<TensorRead> reads;
  for (size_t i = 0; i < stored.size(); ++i)
    reads.push_back({file.view(std::to_string(i)), device(), stored[i].scalar_type()});
  int64_t bytes = 0;
  const std::vector<Tensor> tensors = read_tensors(reads, [&](int64_t now) { bytes = now; });
  ASSERT_EQ(tensors.size(), stored.size());
  int64_t expected_bytes = 0;
  for (size_t i = 0; i < stored.size(); ++i) {
    EXPECT_EQ(tensors[i].device().type(), device().type());
    const Tensor back = tensors[i].to(Placement::host()).contiguous();
    ASSERT_EQ(back.nbytes(), reads[i].stored.bytes.size());
    expected_bytes += static_cast<int64_t>(back.nbytes());
    EXPECT_TRUE(back.numel() == 0 || std::memcmp(back.data_ptr(), reads[i].stored.bytes.data(), back.nbytes()) == 0)
        << i;
  }
  EXPECT_EQ(bytes, expected_bytes);
}

TEST_P(StagingOnDevice, ConvertsAsTheHostDoes) {
  const TempDir folder;
  const std::vector<Tensor> stored = stored_tensors();
  const SafetensorsReader file = write_file(folder, stored);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    std::vector<TensorRead> reads;
    for (size_t i = 0; i < stored.size(); ++i) reads.push_back({file.view(std::to_string(i)), device(), type});
    const std::vector<Tensor> tensors = read_tensors(reads, [](int64_t) {});
    for (size_t i = 0; i < stored.size(); ++i)
      EXPECT_TRUE(torch::equal(tensors[i].to(Placement::host()), stored[i].to(type))) << i;
  }
}

TEST_P(StagingOnDevice, SaysThatAFileWasCut) {
  const TempDir folder;
  const SafetensorsReader file = write_file(folder, {stored_tensors()[0]});
  std::filesystem::resize_file(folder / "f", 33 << 20);  // the first buffer is full and on its way
  const std::vector<TensorRead> reads{{file.view("0"), device(), at::kFloat}};
  EXPECT_THROW(read_tensors(reads, [](int64_t) {}), CheckpointError);
}

TEST_P(StagingOnDevice, ItsBufferIsPageLockedForAGpu) {
  EXPECT_EQ(Placement::staging_buffer(1 << 20, device()).is_pinned(), device().is_cuda());
}

}  // namespace
}  // namespace lancet
