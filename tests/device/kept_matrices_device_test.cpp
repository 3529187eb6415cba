// Matrices that solves take, on a device and page-locked on the host: counted uploads, bytes, bits.
#include <gtest/gtest.h>

#include <fstream>

#include "fake_tensors.h"
#include "lancet/statistics/kept_matrices.h"
#include "support/fake_device.h"
#include "support/temp_dir.h"

namespace lancet::testing {
namespace {

constexpr int64_t kSize = 64, kBytes = 8 * kSize * kSize;

TEST(KeptMatricesOnADevice, WhatADeviceHasNoRoomForIsPageLockedOnTheHost) {
  const TempDir folder;
  KeptMatrices kept;
  kept.set_room({{fake(0), kBytes}, {kHost, kBytes}});
  const int64_t live = fake_bytes_live(0);
  const auto take = [&](uint64_t number) {
    const std::filesystem::path file = folder / std::to_string(number);
    if (!std::filesystem::exists(file)) std::ofstream(file) << number;
    const Tensor whole = numbers({kSize, kSize}, number, at::kDouble).mT();
    const FakeWork before = fake_work();
    const Tensor matrix = kept.matrix({.file = file, .device = fake(0)}, [&] { return whole; });
    const FakeWork work = fake_work() - before;
    EXPECT_TRUE(torch::equal(matrix.to(kHost), whole)) << number;
    EXPECT_EQ(matrix.strides(), whole.strides()) << number;
    EXPECT_LE(kept.kept_bytes(fake(0)), kBytes);
    EXPECT_LE(kept.kept_bytes(kHost), kBytes);
    return work;
  };
  for (const uint64_t number : {1, 2, 3}) EXPECT_EQ(take(number).uploaded_bytes, kBytes) << number;
  EXPECT_EQ(kept.reads(), 3);
  EXPECT_EQ(take(1).uploads, 0) << "it lies there";
  EXPECT_EQ(take(2).uploaded_bytes, kBytes) << "from page-locked memory";
  EXPECT_EQ(kept.reads(), 3);
  EXPECT_EQ(take(3).uploaded_bytes, kBytes);
  EXPECT_EQ(kept.reads(), 4) << "there was no place";
  EXPECT_EQ(fake_bytes_live(0), live + kBytes) << "what was taken is given back";
  take(2);
  take(2);  // the device's was not asked for since
  EXPECT_EQ(take(2).uploads, 0);
  EXPECT_EQ(kept.reads(), 4);
  EXPECT_EQ(take(1).uploaded_bytes, kBytes);
  EXPECT_EQ(kept.reads(), 5);
}

}  // namespace
}  // namespace lancet::testing
