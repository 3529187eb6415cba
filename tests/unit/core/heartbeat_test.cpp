#include "lancet/core/progress.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "lancet/core/reporter.h"

namespace lancet {
namespace {

/// Seconds that the clock of stages is ahead of a fixed point: it stands still but for the tests.
std::atomic<int64_t> seconds_now{0};

class Heartbeats : public ::testing::Test {
 protected:
  void SetUp() override {
    seconds_now = 1'000;
    set_stage_clock([] { return StageTime(std::chrono::seconds(seconds_now.load())); });
    log_line("");  // the last thing printed, at this time
    ::testing::internal::CaptureStderr();
  }
  void TearDown() override {
    if (!is_taken_) ::testing::internal::GetCapturedStderr();
    stderr_reporter().set_verbosity(Verbosity::kNormal);
    set_stage_clock(nullptr);
  }

  /// What was printed so far, after real time in which several heartbeats looked at the clock.
  std::string printed() {
    ::usleep(900'000);
    is_taken_ = true;
    return ::testing::internal::GetCapturedStderr();
  }

 private:
  bool is_taken_ = false;
};

TEST_F(Heartbeats, SpeakOnceAfterAMinuteWithoutProgress) {
  Progress progress("weights", 5, "layers");
  progress.advance();
  seconds_now += 125;
  EXPECT_EQ(printed(), "weights  1/5 layers  2 min 5 s each  8 min 20 s left  (running for 2 min 5 s)\n");
}

TEST_F(Heartbeats, SpeakAgainAfterTheNextMinute) {
  const StageHeartbeat stage("export");
  for (int i = 0; i < 2; ++i) {
    seconds_now += 61;
    ::usleep(900'000);
  }
  EXPECT_EQ(printed(), "export  (running for 1 min 1 s)\nexport  (running for 2 min 2 s)\n");
}

TEST_F(Heartbeats, AreSilentWhileSomethingIsPrinted) {
  const StageHeartbeat stage("export");
  seconds_now += 40;
  log_line("a line");
  seconds_now += 59;
  EXPECT_EQ(printed(), "a line\n");
}

TEST_F(Heartbeats, SayNothingOfStagesThatHaveNotRunForAMinute) {
  seconds_now += 100;
  const StageHeartbeat stage("export");
  seconds_now += 59;
  EXPECT_EQ(printed(), "");
}

TEST_F(Heartbeats, SpeakForTheYoungestStage) {
  const StageHeartbeat outer("edit");
  auto inner = std::make_unique<StageHeartbeat>("values");
  seconds_now += 61;
  ::usleep(900'000);
  inner.reset();
  seconds_now += 61;
  EXPECT_EQ(printed(), "values  (running for 1 min 1 s)\nedit  (running for 2 min 2 s)\n");
}

TEST_F(Heartbeats, AreSilentWhenQuiet) {
  stderr_reporter().set_verbosity(Verbosity::kQuiet);
  const StageHeartbeat stage("export");
  seconds_now += 1'000;
  EXPECT_EQ(printed(), "");
}

TEST_F(Heartbeats, EndWithTheirStage) {
  { const StageHeartbeat stage("export"); }
  seconds_now += 1'000;
  EXPECT_EQ(printed(), "");
}

TEST_F(Heartbeats, TellProgressThatOtherThreadsMake) {
  Progress progress("values", 100, "requests");
  progress.note("loss 0.31");
  std::jthread worker([&] { progress.advance(6); });
  worker.join();
  seconds_now += 60;
  EXPECT_EQ(printed(), "values  6/100 requests  0.1/s  15 min 40 s left  loss 0.31  (running for 1 min 0 s)\n");
}

}  // namespace
}  // namespace lancet
