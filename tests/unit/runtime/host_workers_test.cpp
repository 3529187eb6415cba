#include "lancet/runtime/host_workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace lancet {
namespace {

const Placement kHost({Placement::host(), Placement::host()}, at::kFloat);

TEST(RunIndependent, RunsEveryPieceOnce) {
  for (const int64_t n : {0, 1, 2, 57}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(n));
    run_independent(kHost, n, [&](int64_t i) { ++runs[static_cast<size_t>(i)]; });
    for (const auto& count : runs) EXPECT_EQ(count, 1);
  }
}

TEST(RunIndependent, ThrowsOnAndBeginsNoMore) {
  std::atomic<int64_t> begun = 0;
  std::atomic<bool> has_failed = false;
  const auto work = [&](int64_t i) {
    ++begun;
    if (i == 0) {
      has_failed = true;
      throw std::runtime_error("piece 0");
    }
    while (!has_failed) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the failure is noted long before all could have run
  };
  EXPECT_THROW(run_independent(kHost, 10'000, work), std::runtime_error);
  EXPECT_LT(begun, 10'000);
}

}  // namespace
}  // namespace lancet
