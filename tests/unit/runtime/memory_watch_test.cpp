#include "lancet/runtime/memory.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <stdexcept>

#include "support/byte_units.h"

namespace lancet {
namespace {

using testing::kGB;

/// What a watch that looks `looks` times prints.
std::string warnings(const MemoryWatch::Look& look, int looks) {
  ::testing::internal::CaptureStderr();
  {
    MemoryWatch watch(look);
    for (int i = 0; i < looks; ++i) watch.check();
  }
  return ::testing::internal::GetCapturedStderr();
}

int64_t peak_of(const PeakBytes& peaks, const std::string& device) {
  for (const auto& [name, bytes] : peaks)
    if (name == device) return bytes;
  return -1;
}

TEST(MemoryWatch, WarnsOncePerDeviceAboveNinetyPercent) {
  const auto look = [] {
    return std::vector<MemoryInUse>{{"cpu", 50 * kGB, 100 * kGB}, {"cuda:1", 91 * kGB, 100 * kGB}};
  };
  EXPECT_EQ(warnings(look, 3),
            "warning: cuda:1: 91 % of its memory is taken (91.0 GB of 100.0 GB): should it run out, use a smaller "
            "editor.values.batch, or end what else runs there\n");
}

TEST(MemoryWatch, IsSilentAtNinetyPercent) {
  EXPECT_EQ(warnings([] { return std::vector<MemoryInUse>{{"cpu", 90, 100}}; }, 3), "");
}

TEST(MemoryWatch, LeavesFailedDevicesToTheJob) {
  EXPECT_EQ(warnings([]() -> std::vector<MemoryInUse> { throw std::runtime_error("device lost"); }, 2), "");
}

TEST(MemoryWatch, KnowsTheHost) {
  const std::vector<MemoryInUse> uses = memory_in_use({Placement::host()});
  ASSERT_EQ(uses.size(), 1U);
  EXPECT_EQ(uses[0].device, "cpu");
  EXPECT_GT(uses[0].used_bytes, 0);
  EXPECT_LT(uses[0].used_bytes, uses[0].total_bytes);
}

TEST(PeakMeter, SeesItsOwnSpanBesideAnother) {
  PeakMeter outer;
  const int64_t small = peak_of(outer.lap(), "cpu");
  ASSERT_GT(small, 0);
  constexpr int64_t kBytes = 256 << 20;
  { const Tensor large = torch::ones({kBytes}, torch::kByte); }
  PeakMeter inner;
  const int64_t after = peak_of(inner.lap(), "cpu");
  EXPECT_LT(after, small + kBytes / 2) << "began when the tensor was gone";
  EXPECT_GE(peak_of(outer.lap(), "cpu"), after + kBytes / 2) << "though the inner one has set the peak back";
  EXPECT_LT(peak_of(outer.lap(), "cpu"), small + kBytes / 2) << "since the last lap";
}

TEST(PeakBytes, KeepTheLarger) {
  PeakBytes peaks{{"cpu", 5}, {"cuda:0", 7}};
  raise_to(peaks, {{"cuda:0", 6}, {"cpu", 9}, {"cuda:1", 1}});
  EXPECT_EQ(peaks, (PeakBytes{{"cpu", 9}, {"cuda:0", 7}, {"cuda:1", 1}}));
}

TEST(DevicesWithMemory, AreTheHostAndEachOfThePlacementOnce) {
  const at::Device first(at::kCUDA, 0), second(at::kCUDA, 1);
  const Placement placement({first, first, second, at::kCPU}, at::kFloat);
  EXPECT_EQ(devices_with_memory(placement, 4), (std::vector<at::Device>{at::kCPU, first, second}));
}

}  // namespace
}  // namespace lancet
