#include "lancet/runtime/devices.h"

#include <gtest/gtest.h>

#include "lancet/core/error.h"
#include "lancet/runtime/gpu_driver.h"

namespace lancet {
namespace {

DeviceChoice find(std::vector<std::string> names) { return find_devices(names); }

TEST(FindDevices, RefusesWhatIsNotThereAndWhatIsNoDevice) {
  EXPECT_THROW(find({}), PlacementError);
  EXPECT_THROW(find({"gpu"}), PlacementError);
  EXPECT_THROW(find({"cuda"}), PlacementError);
  EXPECT_THROW(find({"cuda:90"}), PlacementError);
  EXPECT_THROW(find({"cuda:0=20GiB", "auto"}), PlacementError);
  EXPECT_THROW(find({"cpu", "cpu=1GiB"}), PlacementError);
  EXPECT_THROW(find({"cpu=many"}), PlacementError);
  EXPECT_THROW(find({"cpu="}), PlacementError);
  EXPECT_THROW(find({"cpu=900TiB"}), PlacementError);
}

TEST(FindDevices, TakesBudgets) {
  const DeviceChoice whole = find({"cpu"}), part = find({"cpu=64MiB"});
  EXPECT_EQ(part.devices.at(0).device, Placement::host());
  EXPECT_EQ(part.devices.at(0).bytes, 64 << 20);
  EXPECT_GT(whole.devices.at(0).bytes, 64 << 20);
  EXPECT_TRUE(whole.devices.at(0).is_host());
  EXPECT_FALSE(whole.first_if_enough);
}

TEST(AssumeDevices, ReadsCountsAndTheHost) {
  const DeviceChoice eight = assume_devices("8x80GiB");
  ASSERT_EQ(eight.devices.size(), 8u);
  EXPECT_EQ(eight.devices[7].device.str(), "cuda:7");
  EXPECT_EQ(eight.devices[7].bytes, int64_t{80} << 30);
  const DeviceChoice mixed = assume_devices("24GiB, 2x1.5GB, cpu=64GiB");
  ASSERT_EQ(mixed.devices.size(), 4u);
  EXPECT_EQ(mixed.devices[1].device.str(), "cuda:1");
  EXPECT_EQ(mixed.devices[1].bytes, 1'500'000'000);
  EXPECT_TRUE(mixed.devices[3].is_host());
  for (const char* text : {"", "80", "x80GiB", "0x80GiB", "8x", "cpu", "cpu=", "80GiB,", "8x80GiB 4x24GiB", "200x1GiB"})
    EXPECT_THROW(assume_devices(text), ConfigError) << text;
}

TEST(Speeds, NearlyEqualDevicesAreEqual) {
  std::vector<DeviceBudget> devices = assume_devices("5x1GiB,cpu=1GiB").devices;
  const double measured[] = {98, 49, 100, 52, 93};
  for (size_t i = 0; i < 5; ++i) devices[i].speed = measured[i];
  equalize_speeds(devices);
  EXPECT_EQ(devices[0].speed, devices[2].speed);
  EXPECT_EQ(devices[0].speed, devices[4].speed);
  EXPECT_EQ(devices[1].speed, devices[3].speed);
  EXPECT_NEAR(devices[0].speed, 0.97, 1e-9);
  EXPECT_NEAR(devices[1].speed, 0.505, 1e-9);
  EXPECT_EQ(devices[5].speed, 1.0);
}

TEST(Placements, StagesAreRunsOfEqualDevices) {
  const at::Device a(at::kCUDA, 0), b(at::kCUDA, 1);
  const Placement placement({a, a, b, a}, at::kBFloat16);
  ASSERT_EQ(placement.stages().size(), 3u);
  EXPECT_EQ(placement.stages()[0].end, 2);
  EXPECT_EQ(placement.stage_of(1), 0);
  EXPECT_EQ(placement.stage_of(3), 2);
  EXPECT_EQ(placement.device_of(2), b);
  EXPECT_EQ(placement.batches_under_way(), 3);
  EXPECT_EQ(placement.description(), "cuda:0: layers 0-1, cuda:1: layers 2-2, cuda:0: layers 3-3");
  EXPECT_FALSE(placement.is_host_only());
  EXPECT_TRUE(Placement({Placement::host()}, at::kFloat).is_host_only());
}

TEST(Placements, SolvesRunWithTheirLayersOrOnTheHost) {
  const at::Device a(at::kCUDA, 0), b(at::kCUDA, 1), host = Placement::host();
  Placement placement({a, b, host}, at::kFloat), alone({a}, at::kFloat), whole({host}, at::kFloat);
  EXPECT_EQ(placement.solve_device(0), a);
  EXPECT_EQ(placement.solve_device(1), b);
  EXPECT_EQ(placement.solve_device(2), host);
  for (Placement* each : {&placement, &alone, &whole}) each->set_solve_on(SolveOn::kHost);
  for (int64_t layer = 0; layer < 3; ++layer) EXPECT_EQ(placement.solve_device(layer), host);
  EXPECT_EQ(placement.device_of(0), a);
  EXPECT_EQ(placement.description(), "cuda:0: layers 0-0, cuda:1: layers 1-1, cpu: layers 2-2; solves on cpu");
  EXPECT_EQ(alone.description(), "cuda:0; solves on cpu");
  EXPECT_EQ(whole.description(), "cpu");
}

std::vector<std::string> names_of(const DeviceChoice& choice) {
  std::vector<std::string> names;
  for (const DeviceBudget& budget : choice.devices) names.push_back(budget.device.str());
  return names;
}

/// Four GPUs of 80 GB and a host of 64 GB; notes which devices it was asked about.
struct FakeMachine {
  std::vector<std::string> asked;

  DeviceChoice find(std::vector<std::string> names, HostShare share) {
    asked.clear();
    return find_devices(names, share,
                        {4, [this](at::Device device) {
                           asked.push_back(device.str());
                           return std::optional<int64_t>(device.is_cpu() ? 64'000'000'000 : 80'000'000'000);
                         }});
  }
};

using Names = std::vector<std::string>;

TEST(FindDevices, DealsOutGpusToTheRanksOfAHost) {
  FakeMachine machine;
  EXPECT_EQ(names_of(machine.find({"auto"}, {})), (Names{"cuda:0", "cuda:1", "cuda:2", "cuda:3"}));
  EXPECT_EQ(names_of(machine.find({"auto"}, {1, 2})), (Names{"cuda:2", "cuda:3"}));
  EXPECT_EQ(names_of(machine.find({"auto"}, {0, 3})), (Names{"cuda:0"}));
  EXPECT_EQ(names_of(machine.find({"auto"}, {2, 3})), (Names{"cuda:2", "cuda:3"}));
  EXPECT_EQ(names_of(machine.find({"cuda:3", "cuda:1"}, {1, 2})), (Names{"cuda:1"}));
  EXPECT_EQ(machine.find({"auto"}, {1, 2}).devices[0].bytes, 76'000'000'000);
  EXPECT_TRUE(machine.find({"auto"}, {1, 2}).first_if_enough);
}

TEST(FindDevices, DividesWhatSeveralRanksGet) {
  FakeMachine machine;
  const DeviceChoice second = machine.find({"cuda:0", "cuda:1=40GB", "cpu"}, {1, 4});
  EXPECT_EQ(names_of(second), (Names{"cuda:0", "cpu"}));
  EXPECT_EQ(second.devices[0].bytes, 38'000'000'000);
  EXPECT_EQ(second.devices[1].bytes, 16'000'000'000);
  const DeviceChoice last = machine.find({"cuda:0", "cuda:1=40GB", "cpu"}, {3, 4});
  EXPECT_EQ(names_of(last), (Names{"cuda:1", "cpu"}));
  EXPECT_EQ(last.devices[0].bytes, 20'000'000'000);
  EXPECT_EQ(machine.find({"auto"}, {3, 4}).host_bytes, 16'000'000'000);
  EXPECT_EQ(machine.find({"cuda:0"}, {}).host_bytes, 64'000'000'000);
}

/// A question about a GPU's memory makes a context there, which costs memory that the rank whose GPU it is counts on.
TEST(FindDevices, AsksNothingOfOtherRanksGpus) {
  FakeMachine machine;
  for (int64_t rank = 0; rank < 4; ++rank) {
    machine.find({"auto"}, {rank, 4});
    EXPECT_EQ(machine.asked, (Names{device_name(rank), "cpu"}));
    machine.find({"cuda:0", "cuda:1", "cuda:2", "cuda:3=1GB", "cpu"}, {rank, 4});
    EXPECT_EQ(machine.asked, (Names{device_name(rank), "cpu"}));
  }
}

}  // namespace
}  // namespace lancet
