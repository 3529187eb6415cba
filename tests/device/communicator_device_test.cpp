#include <gtest/gtest.h>
#include <torch/types.h>

#include <atomic>

#include "lancet/distributed/thread_ranks.h"
#include "lancet/doctor/rates.h"
#include "lancet/runtime/devices.h"
#include "support/fake_device.h"

namespace lancet {
namespace {

TEST(CommunicatorOnFakeDevices, SumsAndBroadcastsOnTheTensorsOwnDevices) {
  testing::set_fake_device_count(testing::kMaxFakeDevices);
  std::atomic<int> done = 0;
  run_as_ranks(3, [&](Communicator& ranks) {
    const at::Device own_device(at::kPrivateUse1, static_cast<at::DeviceIndex>(ranks.rank()));
    Tensor own = torch::full({4, 3}, 1.0 + static_cast<double>(ranks.rank()), torch::kDouble).to(own_device);
    ranks.sum(own);
    EXPECT_EQ(own.device(), own_device);
    EXPECT_TRUE(torch::equal(own.to(Placement::host()), torch::full({4, 3}, 6.0, torch::kDouble)));
    const Tensor root = torch::arange(6, torch::kBFloat16).to(at::Device(at::kPrivateUse1, 5));
    const Tensor received = ranks.broadcast(ranks.is_root() ? root : Tensor(), own_device);
    EXPECT_EQ(received.device(), own_device);
    EXPECT_TRUE(torch::equal(received.to(Placement::host()), torch::arange(6, torch::kBFloat16)));
    ++done;
  });
  EXPECT_EQ(done, 3);
}

/// Work on a device may still run when a collective returns: a rate without waiting would be one of asking.
TEST(MeasureAllReduce, WaitsForEachDeviceBeforeItTakesATime) {
  testing::set_fake_device_count(testing::kMaxFakeDevices);
  const int64_t before = testing::fake_synchronisations();
  const ReduceRate rate = measure_all_reduce();
  EXPECT_EQ(rate.ranks, testing::kMaxFakeDevices);
  EXPECT_EQ(rate.device, "fake:0");
  EXPECT_GT(rate.bytes_per_s, 0);
  EXPECT_EQ(testing::fake_synchronisations() - before, 2 * rate.ranks);
}

}  // namespace
}  // namespace lancet
