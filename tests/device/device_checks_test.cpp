// The checks of several devices on fake ones: all well, and one fault each.
#include "lancet/doctor/device_checks.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/doctor/doctor.h"
#include "support/fake_device.h"
#include "support/fake_fault.h"

namespace lancet {
namespace {

using testing::FakeFault;

/// Returns the failures of two devices, as "pair fake:0 fake:1: failure".
std::vector<std::string> failures_of_two() {
  std::vector<std::string> failures;
  for (const DeviceCheck& check : check_devices(testing::fake_devices(2))) {
    std::string text(check_name(check.kind));
    for (const std::string& device : check.devices) text += " " + device;
    if (!check.failure.empty()) failures.push_back(text + ": " + check.failure);
  }
  testing::set_fake_device_count(testing::kMaxFakeDevices);
  return failures;
}

TEST(DeviceChecks, FindNothingOnGoodDevices) {
  const std::vector<DeviceCheck> checks = check_devices(testing::fake_devices(3));
  const auto count = [&](DeviceCheckKind kind) { return std::ranges::count(checks, kind, &DeviceCheck::kind); };
  EXPECT_EQ(count(DeviceCheckKind::kBytes), 3);
  EXPECT_EQ(count(DeviceCheckKind::kProducts), 3);
  EXPECT_EQ(count(DeviceCheckKind::kPair), 6) << "both directions";
  EXPECT_EQ(count(DeviceCheckKind::kSplitModel), 1);
  EXPECT_EQ(count(DeviceCheckKind::kAllReduce), 1);
  for (const DeviceCheck& check : checks) {
    EXPECT_EQ(check.failure, "") << check_name(check.kind);
    const bool has_rate = check.kind == DeviceCheckKind::kPair || check.kind == DeviceCheckKind::kAllReduce;
    EXPECT_EQ(check.bytes_per_s > 0, has_rate) << check_name(check.kind);
  }
  EXPECT_EQ(checks.back().devices, (std::vector<std::string>{"fake:0", "fake:1", "fake:2"}));
  MachineFacts facts;
  facts.device_checks = checks;
  EXPECT_EQ(overall_state(diagnose_device_checks(facts)), FindingState::kOk);
}

TEST(DeviceChecks, FindAWrongByteBetweenTwoDevices) {
  const FakeFault fault = FakeFault::of_copies(1, 0);
  const std::vector<std::string> failures = failures_of_two();
  ASSERT_EQ(failures.size(), 1u) << ::testing::PrintToString(failures);
  EXPECT_TRUE(failures[0].starts_with("pair fake:1 fake:0: 1 of 33554432 bytes are wrong, the first at 33554431: "))
      << failures[0];
}

TEST(DeviceChecks, FindAWrongByteOnTheWayToADevice) {
  const FakeFault fault = FakeFault::of_copies(-1, 1);
  const std::vector<std::string> failures = failures_of_two();
  ASSERT_FALSE(failures.empty());
  EXPECT_TRUE(failures[0].starts_with("bytes fake:1: 1 of 33554432 bytes are wrong")) << failures[0];
  for (const std::string& failure : failures) EXPECT_NE(failure.find("fake:1"), std::string::npos) << failure;
}

TEST(DeviceChecks, FindAWrongByteOnTheWayBack) {
  const FakeFault fault = FakeFault::of_copies(0, -1);
  const std::vector<std::string> failures = failures_of_two();
  ASSERT_FALSE(failures.empty());
  EXPECT_TRUE(failures[0].starts_with("bytes fake:0: ")) << failures[0];
}

TEST(DeviceChecks, FindAWrongProduct) {
  const FakeFault fault = FakeFault::of_products(1);
  const std::vector<std::string> failures = failures_of_two();
  ASSERT_FALSE(failures.empty());
  EXPECT_TRUE(failures[0].starts_with("products fake:1: Float: NMSE ")) << failures[0];
}

TEST(DeviceChecks, GoOnAfterADeviceThatIsNotThere) {
  std::vector<at::Device> devices = testing::fake_devices(3);
  testing::set_fake_device_count(2);  // torch still shows three
  const std::vector<DeviceCheck> checks = check_devices(devices);
  testing::set_fake_device_count(testing::kMaxFakeDevices);
  for (const DeviceCheck& check : checks) {
    const bool names_it = std::ranges::find(check.devices, "fake:2") != check.devices.end();
    EXPECT_EQ(check.failure.empty(), !names_it) << check_name(check.kind) << ": " << check.failure;
    EXPECT_EQ(check.failure.find('\n'), std::string::npos) << check.failure;
  }
}

TEST(DeviceChecks, TakeAllOrNames) {
  testing::set_fake_device_count(testing::kMaxFakeDevices);
  EXPECT_EQ(devices_to_check("all").size(), static_cast<size_t>(testing::kMaxFakeDevices));
  const std::vector<at::Device> named = devices_to_check("fake:3,cpu");
  EXPECT_EQ(named, (std::vector<at::Device>{{at::kPrivateUse1, 3}, {at::kCPU}}));
  EXPECT_THROW(devices_to_check("fake:0=1GiB"), ConfigError);
  EXPECT_THROW(devices_to_check("fake:9"), PlacementError);
  EXPECT_THROW(devices_to_check("fake:1,fake:1"), PlacementError);
  EXPECT_THROW(devices_to_check(""), PlacementError);
}

/// A device beside the host: no rank on the host, which another library would connect.
TEST(DeviceChecks, TakeTheHostToo) {
  std::vector<at::Device> devices = testing::fake_devices(1);
  devices.push_back(Placement::host());
  const std::vector<DeviceCheck> checks = check_devices(devices);
  testing::set_fake_device_count(testing::kMaxFakeDevices);
  EXPECT_EQ(checks.size(), 2u + 2 + 2 + 1);
  for (const DeviceCheck& check : checks) EXPECT_EQ(check.failure, "") << check_name(check.kind);
}

}  // namespace
}  // namespace lancet
