#include "lancet/job/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace lancet {
namespace {

using Batches = std::vector<std::vector<int64_t>>;

std::vector<int64_t> flat(const Batches& batches) {
  std::vector<int64_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

TEST(Schedule, CutsRequestsInTheirOrder) {
  EXPECT_EQ(plan_schedule({.batch = 2}, 5, 0), (Batches{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(plan_schedule({}, 3, 0), (Batches{{0, 1, 2}}));
  EXPECT_EQ(plan_schedule({.batch = 9}, 3, 0), (Batches{{0, 1, 2}}));
}

TEST(Schedule, ShufflesBySeedAlone) {
  const ScheduleOptions shuffled{.batch = 10, .order = BatchOrder::kShuffled};
  const std::vector<int64_t> once = flat(plan_schedule(shuffled, 100, 7));
  EXPECT_EQ(flat(plan_schedule(shuffled, 100, 7)), once);
  EXPECT_NE(flat(plan_schedule(shuffled, 100, 8)), once);
  std::vector<int64_t> sorted = once, all(100);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
  EXPECT_NE(once, all);
  // The same on every machine: the numbers of mt19937_64 are the standard's.
  EXPECT_EQ(flat(plan_schedule({.order = BatchOrder::kShuffled}, 5, 0)), (std::vector<int64_t>{2, 0, 1, 3, 4}));
}

TEST(Schedule, SaysWhatIsMeasuredBetweenBatches) {
  const ScheduleOptions often{.batch = 2}, seldom{.batch = 2, .measure_every = 2},
      never{.batch = 2, .measure_every = 0};
  const auto measured = [](const ScheduleOptions& schedule) {
    std::vector<size_t> behind;
    for (size_t i = 0; i < 5; ++i)
      if (schedule.measures_after(i, 5)) behind.push_back(i);
    return behind;
  };
  EXPECT_EQ(measured(often), (std::vector<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(measured(seldom), (std::vector<size_t>{1, 3}));
  EXPECT_TRUE(measured(never).empty());
  EXPECT_EQ(often.n_batches(9), 5);
  EXPECT_EQ(often.measured_between(9), 2 + 3 * 4);
  EXPECT_EQ(seldom.measured_between(9), 2 * 4);
  EXPECT_EQ(never.measured_between(9), 0);
  EXPECT_EQ(ScheduleOptions{}.n_batches(9), 1);
}

}  // namespace
}  // namespace lancet
