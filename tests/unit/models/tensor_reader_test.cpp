
#include <gtest/gtest.h>
#include <torch/types.h>

#include <fstream>
#include <optional>

#include "lancet/core/error.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/devices.h"
#include "support/temp_dir.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

const std::vector<at::ScalarType> kTypes{at::kFloat, at::kBFloat16, at::kHalf, at::kDouble};

/// Several pieces and a rest, one element, none, a vector of odd length: in this order the later ones are not aligned.
const std::vector<std::vector<int64_t>> kTensorShapes{{1}, {3}, {513, 1027}, {0, 4}, {700'001}};

struct StoredTensors {
  std::vector<Tensor> tensors;
  std::optional<SafetensorsReader> file;
};

/// A byte tensor of one element first, so that nothing after it is aligned.
StoredTensors write_stored(const fs::path& path, at::ScalarType type) {
  torch::manual_seed(7);
  StoredTensors stored{{torch::ones({1}, torch::kByte)}, std::nullopt};
  for (const auto& shape : kTensorShapes) stored.tensors.push_back(torch::randn(shape).to(type));
  std::vector<TensorSource> sources;
  for (const Tensor& tensor : stored.tensors) sources.push_back(to_source(std::to_string(sources.size()), tensor));
  write_safetensors(path, sources, {});
  stored.file = SafetensorsReader::open(path);
  return stored;
}

std::vector<TensorRead> reads_of(const StoredTensors& stored, at::ScalarType type) {
  std::vector<TensorRead> reads;
  for (size_t i = 1; i < stored.tensors.size(); ++i)
    reads.push_back({stored.file->view(std::to_string(i)), Placement::host(), type});
  return reads;
}

void ignore_bytes(int64_t /*bytes*/) {}

TEST(TensorReader, GivesTheBitsThatTorchConvertsTo) {
  const TempDir folder;
  for (const at::ScalarType from : kTypes) {
    const StoredTensors stored = write_stored(folder / at::toString(from), from);
    for (const at::ScalarType to : kTypes) {
      const std::vector<Tensor> tensors = read_tensors(reads_of(stored, to), ignore_bytes);
      ASSERT_EQ(tensors.size(), kTensorShapes.size());
      for (size_t i = 0; i < tensors.size(); ++i) {
        EXPECT_EQ(tensors[i].scalar_type(), to);
        EXPECT_TRUE(torch::equal(tensors[i], stored.tensors[i + 1].to(to))) << from << " to " << to << ", tensor " << i;
      }
    }
  }
}

TEST(TensorReader, CountsTheBytesRead) {
  const TempDir folder;
  const StoredTensors stored = write_stored(folder / "f", at::kHalf);
  std::vector<int64_t> told;
  read_tensors(reads_of(stored, at::kFloat), [&](int64_t bytes) { told.push_back(bytes); });
  int64_t expected = 0;
  ASSERT_EQ(told.size(), kTensorShapes.size());
  for (size_t i = 0; i < told.size(); ++i)
    EXPECT_EQ(told[i], expected += static_cast<int64_t>(stored.tensors[i + 1].nbytes()));
}

TEST(TensorReader, SharesNoMemoryWithTheFile) {
  const TempDir folder;
  for (const at::ScalarType to : {at::kFloat, at::kDouble}) {
    const StoredTensors stored = write_stored(folder / "f", at::kFloat);
    const std::vector<Tensor> tensors = read_tensors(reads_of(stored, to), ignore_bytes);
    std::fstream file(folder / "f", std::ios::in | std::ios::out | std::ios::binary);  // the same file, written over
    const std::vector<char> zeros(fs::file_size(folder / "f"));
    file.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
    file.close();
    fs::resize_file(folder / "f", 8);
    for (size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE(torch::equal(tensors[i], stored.tensors[i + 1].to(to)));
    fs::remove(folder / "f");
  }
}

TEST(TensorReader, SaysThatAFileWasCut) {
  const TempDir folder;
  const StoredTensors stored = write_stored(folder / "f", at::kFloat);
  fs::resize_file(folder / "f", fs::file_size(folder / "f") / 2);
  for (const at::ScalarType to : {at::kFloat, at::kDouble}) {
    try {
      read_tensors(reads_of(stored, to), ignore_bytes);
      FAIL() << "read what is not there";
    } catch (const CheckpointError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find((folder / "f").string()), std::string::npos) << message;
      EXPECT_NE(message.find("cut since it was opened"), std::string::npos) << message;
    }
  }
}

TEST(TensorReader, RefusesTypesThatNoWeightHas) {
  const TempDir folder;
  const std::string bytes = "12345678";
  const std::vector<TensorSource> sources{{"w", DType::kF8E5M2, {8}, std::as_bytes(std::span(bytes))}};
  write_safetensors(folder / "f", sources, {});
  const SafetensorsReader file = SafetensorsReader::open(folder / "f");
  const std::vector<TensorRead> reads{{file.view("w"), Placement::host(), at::kFloat}};
  EXPECT_THROW(read_tensors(reads, ignore_bytes), CheckpointError);
}

}  // namespace
}  // namespace lancet
