// Streams of fake devices and their memory: what a GPU would do wrong is found. So it is in all tests of this program:
// a test after which memory was freed too early, or was written to once it was freed, fails.
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gtest/gtest.h>

#include "fake_tensors.h"
#include "support/fake_device.h"

namespace lancet::testing {
namespace {

class FailsOnMemoryProblems final : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo&) override {
    for (const std::string& problem : take_fake_memory_problems()) ADD_FAILURE() << problem;
  }
};

[[maybe_unused]] const bool watches_memory = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new FailsOnMemoryProblems);
  return true;
}();

struct FakeStreams : public ::testing::Test {
  const c10::impl::DeviceGuardImplInterface& guard = *c10::impl::getDeviceGuardImpl(at::kPrivateUse1);
  c10::Stream usual = guard.getDefaultStream(fake(0)), side = guard.getStreamFromGlobalPool(fake(0), false);

  static void wait(c10::Stream waiting, c10::Stream other) {
    c10::Event done(other.device_type());
    done.record(other);
    done.block(waiting);
  }
  Tensor made_on(c10::Stream stream) const {
    const c10::StreamGuard on(stream);
    return torch::ones({8}, torch::device(fake(0))) * 2;
  }
  static bool has_problem(const std::string& part) {
    const std::vector<std::string> problems = take_fake_memory_problems();
    return problems.size() == 1 && problems[0].find(part) != std::string::npos;
  }
};

TEST_F(FakeStreams, AUseThatNothingOrdersIsRefused) {
  Tensor x = made_on(side);
  EXPECT_THROW(x + 1, c10::Error);
  wait(usual, side);
  EXPECT_EQ((x + 1).sum().item<float>(), 24);
  const Tensor y = x * 1;
  const c10::StreamGuard on(side);
  const Tensor z = x * 1;  // two may read
  EXPECT_THROW(x.add_(1), c10::Error);
  EXPECT_THROW(y + 1, c10::Error);
  wait(side, usual);
  x.add_(1);
  y.add_(1);
  wait(usual, side);
}

TEST_F(FakeStreams, AMissingRecordStreamIsFound) {
  for (const bool is_recorded : {false, true}) {
    Tensor x = made_on(side);
    wait(usual, side);
    const Tensor y = x + 1;
    if (is_recorded) x.record_stream(usual);
    x.reset();
    EXPECT_EQ(has_problem("may still use: expected record_stream"), !is_recorded);
  }
}

TEST_F(FakeStreams, AWaitOrAReadDoesInItsPlace) {
  Tensor x = made_on(side);
  wait(usual, side);
  Tensor y = x + 1;
  wait(side, usual);
  x.reset();
  x = made_on(side);
  wait(usual, side);
  y = x + 1;
  EXPECT_EQ(y.sum().item<float>(), 24);
  x.reset();
  EXPECT_TRUE(take_fake_memory_problems().empty());
}

TEST_F(FakeStreams, MemoryIsPoisonedAndGoesToItsOwnStream) {
  const auto fresh = [&](c10::Stream stream) {
    const c10::StreamGuard on(stream);
    return torch::empty({1237}, torch::device(fake(0)));
  };
  Tensor x = torch::zeros({1237}, torch::device(fake(0)));
  void* const place = x.data_ptr();
  x.reset();
  const Tensor elsewhere = fresh(side);
  EXPECT_NE(elsewhere.data_ptr(), place);
  const Tensor again = fresh(usual);
  EXPECT_EQ(again.data_ptr(), place);
  for (const Tensor& memory : {elsewhere, again}) EXPECT_TRUE(memory.to(kHost).isnan().all().item<bool>());
}

TEST_F(FakeStreams, AWriteToFreedMemoryIsFound) {
  Tensor x = torch::empty({1239}, torch::device(fake(0)));
  auto* const place = static_cast<float*>(x.data_ptr());
  x.reset();
  place[7] = 1;
  const Tensor next = torch::empty({1239}, torch::device(fake(0)));
  EXPECT_EQ(next.data_ptr(), place);
  EXPECT_TRUE(has_problem("after it was freed"));
}

}  // namespace
}  // namespace lancet::testing
