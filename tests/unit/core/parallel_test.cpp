#include "lancet/core/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

namespace lancet {
namespace {

TEST(ForEachInParallel, DoesEveryPieceOnce) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{3}, size_t{1000}}) {
    std::vector<std::atomic<int>> done(count);
    for_each_in_parallel(count, 4, [&](size_t i) { ++done[i]; });
    for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
  }
}

TEST(ForEachInParallel, RunsPiecesAtTheSameTime) {
  std::latch all_there(3);  // hangs unless three pieces run at once
  for_each_in_parallel(3, 3, [&](size_t) { all_there.arrive_and_wait(); });
  EXPECT_TRUE(all_there.try_wait());
}

TEST(ForEachInParallel, StaysInTheCallersThreadWhenAskedTo) {
  const auto caller = std::this_thread::get_id();
  for (const size_t most : {size_t{0}, size_t{1}})
    for_each_in_parallel(5, most, [&](size_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST(ForEachInParallel, ThrowsAnErrorOfAnyThreadAndBeginsNothingAfter) {
  for (const size_t threads : {size_t{1}, size_t{2}, size_t{8}}) {
    std::atomic<size_t> begun{0};
    EXPECT_THROW(for_each_in_parallel(1'000'000, threads,
                                      [&](size_t i) {
                                        ++begun;
                                        if (i == 10) throw std::runtime_error("no");
                                      }),
                 std::runtime_error);
    EXPECT_GE(begun, 11U);
    if (threads == 1) {
      EXPECT_EQ(begun, 11U);
    }
  }
}

}  // namespace
}  // namespace lancet
