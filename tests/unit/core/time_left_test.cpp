// What is said of the time left, with times that the tests choose: an even pace, a machine that becomes busy, work of
// which much turns out not to be needed.
#include "lancet/core/time_left.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>
#include <vector>

namespace lancet {
namespace {

StageTime at(double seconds) {
  return StageTime(std::chrono::duration_cast<StageTime::duration>(std::chrono::duration<double>(1000 + seconds)));
}

TEST(WorkPace, TakesTheTimeLeftFromAnEvenPace) {
  WorkPace pace(at(0));
  for (int second = 1; second <= 100; ++second) pace.note(at(second), 2.0 * second);
  EXPECT_DOUBLE_EQ(pace.seconds_left(at(100), {.done = 200, .left = 300}).value(), 150);
}

TEST(WorkPace, SaysNothingBeforeItKnowsAnything) {
  const WorkPace pace(at(0));
  EXPECT_FALSE(pace.seconds_left(at(1.9), {.done = 50, .left = 50})) << "the set-up is most of it";
  EXPECT_TRUE(pace.seconds_left(at(2.1), {.done = 50, .left = 50}));
  EXPECT_FALSE(pace.seconds_left(at(9), {.done = 1, .left = 99})) << "a small share, after a short time";
  EXPECT_TRUE(pace.seconds_left(at(11), {.done = 1, .left = 99})) << "but a wait is never without a word";
  EXPECT_FALSE(pace.seconds_left(at(11), {.done = 1, .left = 6399})) << "one step of one text of 100";
  EXPECT_FALSE(pace.seconds_left(at(3600), {.done = 0, .left = 99}));
  EXPECT_FALSE(pace.seconds_left(at(3600), {.done = 99, .left = 0}));
}

/// Announced: 120 s at the pace of the first ten seconds. Then the machine gets busy, and everything takes 4.5 times as
/// long: 520 s in all. The estimate follows within a minute.
TEST(WorkPace, FollowsAMachineThatBecomesBusy) {
  WorkPace pace(at(0));
  const auto done_at = [](double seconds) { return seconds <= 10 ? seconds : 10 + (seconds - 10) / 4.5; };
  for (int second = 1; second <= 500; ++second) {
    pace.note(at(second), done_at(second));
    const double truly = 10 + 110 * 4.5 - second;
    const double said =
        pace.seconds_left(at(second), {.done = done_at(second), .left = 120 - done_at(second)}).value_or(std::nan(""));
    if (second == 10) {
      EXPECT_NEAR(said, 110, 1);
    } else if (second >= 60) {
      EXPECT_NEAR(said, truly, 0.02 * truly + 1) << second;
    }
  }
}

TEST(WorkPace, ForgetsASlowFirstPiece) {
  WorkPace pace(at(0));
  pace.note(at(60), 1);  // a library was loaded
  for (int piece = 2; piece <= 60; ++piece) pace.note(at(60 + piece), piece);
  EXPECT_NEAR(pace.seconds_left(at(120), {.done = 60, .left = 40}).value(), 40, 1);
}

TEST(WorkPace, TellsALongerTimeWhileNothingGetsOn) {
  WorkPace pace(at(0));
  for (int second = 1; second <= 60; ++second) pace.note(at(second), second);
  const WorkSoFar work{.done = 60, .left = 60};
  double before = 0;
  for (double second = 60; second <= 600; second += 30) {
    const double said = pace.seconds_left(at(second), work).value();
    EXPECT_GT(said, before);
    before = said;
  }
  EXPECT_NEAR(before, 600, 1);
}

/// Work that had to begin again.
TEST(WorkPace, SurvivesLessBeingDoneThanBefore) {
  WorkPace pace(at(0));
  for (int second = 1; second <= 100; ++second) pace.note(at(second), second);
  pace.note(at(101), 20);
  EXPECT_GT(pace.seconds_left(at(101), {.done = 20, .left = 100}).value(), 0);
}

/// A day of small steps: as many marks as there are seconds would make each step slow.
TEST(WorkPace, StaysRightAndQuickOverALongStage) {
  WorkPace pace(at(0));
  for (int64_t step = 1; step <= 1'000'000; ++step) {
    const auto done = static_cast<double>(step);
    pace.note(at(0.1 * done), done);
  }
  EXPECT_NEAR(pace.seconds_left(at(100'000), {.done = 1'000'000, .left = 1'000'000}).value(), 100'000, 2000);
}

/// Requests of one batch take a step together, and are over when their values are found: after `ends[i]` steps.
void run_batch(StepsAhead& steps, const std::vector<int64_t>& ends, int64_t first, int64_t until) {
  for (int64_t step = 1; step <= until; ++step)
    for (size_t i = 0; i < ends.size(); ++i) {
      const int64_t item = first + static_cast<int64_t>(i);
      if (step <= ends[i]) steps.step(item);
      if (step == ends[i]) steps.end(item);
    }
}

TEST(StepsAhead, ExpectsAllStepsWhileNothingWasOver) {
  StepsAhead steps(4, 25);
  EXPECT_EQ(steps.work().left, 100);
  run_batch(steps, {20, 20, 20, 20}, 0, 5);
  EXPECT_EQ(steps.work().done, 20);
  EXPECT_EQ(steps.work().left, 80);
  EXPECT_EQ(steps.count_under_way(), 4);
}

/// Ten batches whose requests need 6 to 14 of 40 steps: after the first batch what is left is known within a tenth,
/// where by the most steps it is told three to four times too high.
TEST(StepsAhead, LearnsFromThoseThatWereOverSooner) {
  constexpr int64_t kBatches = 10, kBatch = 20, kMost = 40;
  std::mt19937 random(7);
  std::uniform_int_distribution<int64_t> needed(6, 14);
  std::vector<std::vector<int64_t>> ends(kBatches);
  int64_t all = 0;
  for (std::vector<int64_t>& batch : ends)
    for (int64_t i = 0; i < kBatch; ++i) all += batch.emplace_back(needed(random));
  StepsAhead steps(kBatches * kBatch, kMost);
  for (int64_t b = 0; b < kBatches; ++b) {
    run_batch(steps, ends[static_cast<size_t>(b)], b * kBatch, kMost);
    const WorkSoFar work = steps.work();
    const double truly = static_cast<double>(all) - work.done;
    EXPECT_NEAR(work.left, truly, 0.1 * truly) << b;
    if (b == 0) {
      EXPECT_GT(static_cast<double>((kBatches - 1) * kBatch * kMost), 3 * truly);
    }
  }
  EXPECT_EQ(steps.work().left, 0);
}

/// One batch: those that are under way are expected to go on ending as the others did.
TEST(StepsAhead, LearnsWithinABatch) {
  StepsAhead steps(100, 40);
  std::vector<int64_t> ends;
  for (int64_t i = 0; i < 100; ++i) ends.push_back(6 + i % 9);
  run_batch(steps, ends, 0, 10);
  double truly = 0;
  for (const int64_t end : ends) truly += static_cast<double>(std::max<int64_t>(0, end - 10));
  const double by_most_steps = 30.0 * static_cast<double>(steps.count_under_way());
  EXPECT_LT(steps.work().left, by_most_steps / 2);
  EXPECT_GT(steps.work().left, truly);
}

TEST(StepsAhead, CountsItemsThatBeginAgain) {
  StepsAhead steps(2, 10);
  run_batch(steps, {3, 10}, 0, 5);
  EXPECT_EQ(steps.work().done, 8);
  steps.restart(0);
  steps.restart(1);
  EXPECT_EQ(steps.work().done, 8) << "the time went by";
  EXPECT_EQ(steps.count_under_way(), 0);
  EXPECT_GT(steps.work().left, 10);
  steps.add_items(1);
  for (int64_t item = 0; item < 3; ++item) steps.end(item);
  EXPECT_EQ(steps.work().left, 0);
}

TEST(StepsAhead, TakesWhatWasNoWorkForNoSign) {
  StepsAhead steps(10, 10);
  for (int64_t item = 0; item < 5; ++item) steps.end(item);  // of an earlier run
  EXPECT_EQ(steps.work().left, 50);
}

TEST(StepsAhead, MayBeToldByManyThreads) {
  StepsAhead steps(8, 100);
  std::vector<std::jthread> threads;
  for (int64_t item = 0; item < 8; ++item)
    threads.emplace_back([&steps, item] {
      for (int64_t step = 0; step < 100; ++step) {
        steps.step(item);
        EXPECT_GE(steps.work().left, 0);
      }
      steps.end(item);
    });
  threads.clear();
  EXPECT_EQ(steps.work().done, 800);
  EXPECT_EQ(steps.work().left, 0);
}

}  // namespace
}  // namespace lancet
