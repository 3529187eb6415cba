// NCCL as lancet uses it, with the one GPU of one rank: a sum, and the end of a group.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "backend_collectives.h"
#include "device_groups.h"
#include "lancet/distributed/thread_ranks.h"
#include "support/on_device.h"

namespace lancet {
namespace {

constexpr std::chrono::seconds kNcclLimit{60};

class NcclOnDevice : public testing::OnDevice {
 protected:
  void SetUp() override {
    testing::OnDevice::SetUp();
    if (!IsSkipped() && !device().is_cuda()) GTEST_SKIP() << "NCCL serves GPUs alone";
    set_environment_of_groups();
  }
  Tensor ones() const { return torch::ones({1 << 20}, torch::TensorOptions(torch::kFloat).device(device())); }
};
LANCET_ON_EACH_DEVICE(NcclOnDevice);

TEST_P(NcclOnDevice, AGroupOfOneSumsAndIsAborted) {
  testing::run_within(kNcclLimit, "an NCCL group of one", [&] {
    Tensor sum = ones();
    {
      DeviceGroups groups(c10::make_intrusive<c10d::HashStore>(), 0, 1);
      const std::vector<std::string> identities{nccl_identity(device())};
      EXPECT_FALSE(identities[0].empty());
      c10d::Backend* group = groups.group_of(identities, kNcclLimit);
      ASSERT_NE(group, nullptr);
      sum_in_rank_order(*group, sum, kNcclLimit);
      EXPECT_EQ(sum.sum().item<double>(), 1 << 20);
      EXPECT_EQ(groups.group_of(identities, kNcclLimit), group);
    }                                              // aborts it
    EXPECT_EQ(sum.sum().item<double>(), 1 << 20);  // the device works on
  });
}

TEST_P(NcclOnDevice, TwoRanksOnOneGpuHaveNoGroup) {
  DeviceGroups groups(c10::make_intrusive<c10d::HashStore>(), 0, 2);
  const std::vector<std::string> same(2, nccl_identity(device()));
  EXPECT_EQ(groups.group_of(same, kNcclLimit), nullptr);
}

TEST_P(NcclOnDevice, ARankAloneSumsAndBroadcasts) {
  testing::run_within(kNcclLimit, "one rank on a GPU", [&] {
    run_as_ranks(1, [&](Communicator& ranks) {
      Tensor sum = ones();
      ranks.sum(sum);
      EXPECT_EQ(sum.sum().item<double>(), 1 << 20);
      EXPECT_TRUE(torch::equal(ranks.broadcast(sum, device()), sum));
    });
  });
}

}  // namespace
}  // namespace lancet
