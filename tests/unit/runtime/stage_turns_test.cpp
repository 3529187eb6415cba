#include "lancet/runtime/host_workers.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace lancet {
namespace {

/// Three stages; the devices need not be there.
Placement three_stages() {
  std::vector<at::Device> devices;
  for (int i = 0; i < 3; ++i) devices.emplace_back(at::kCUDA, static_cast<at::DeviceIndex>(i));
  return plan_placement(6, devices, at::kFloat);
}

TEST(StageTurns, EveryStageTakesThePiecesInOrderOneAtATime) {
  constexpr int64_t kPieces = 200;
  std::array<std::vector<int64_t>, 3> seen;
  std::array<std::atomic<int>, 3> inside{};
  std::atomic<int> under_way{0}, most{0};
  const int64_t done = run_in_turns(three_stages(), 5, kPieces, [&](int64_t piece, StageTurn& turn) {
    const int now = ++under_way;
    for (int before = most; now > before && !most.compare_exchange_weak(before, now);) {
    }
    for (int64_t stage = 0; stage < 3; ++stage) {
      turn.enter(stage);
      const auto at = static_cast<size_t>(stage);
      EXPECT_EQ(++inside[at], 1);
      std::this_thread::sleep_for(std::chrono::microseconds(20 * ((piece + stage) % 3)));
      seen[at].push_back(piece);  // a data race here would be one of turns
      --inside[at];
    }
    --under_way;
  });
  EXPECT_EQ(done, kPieces);
  EXPECT_LE(most, 3);
  for (const std::vector<int64_t>& order : seen) {
    ASSERT_EQ(order.size(), static_cast<size_t>(kPieces - 5));
    for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], static_cast<int64_t>(i) + 5);
  }
}

TEST(StageTurns, SeveralPiecesAreUnderWayAtOnce) {
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  run_in_turns(three_stages(), 0, 3, [&](int64_t piece, StageTurn& turn) {
    turn.enter(2 - piece);  // piece 0 waits in the last stage for piece 2 in the first: none could do so alone
    ++inside;
    for (int i = 0; i < 5000 && !met; ++i) {
      if (inside == 3) met = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  EXPECT_TRUE(met);
}

TEST(StageTurns, AFailedPieceLetsTheOthersEndAndIsThrown) {
  std::atomic<int> ended{0};
  const auto work = [&](int64_t piece, StageTurn& turn) {
    turn.enter(piece == 7 ? 1 : 2);
    if (piece == 7) throw std::runtime_error("piece 7");
    ++ended;
  };
  try {
    run_in_turns(three_stages(), 0, 1000, work);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "piece 7");
  }
  EXPECT_GE(ended, 7);
  EXPECT_LE(ended, 10);
}

TEST(StageTurns, APauseEndsAfterWholePieces) {
  for (const int64_t under_way : {1, 3}) {
    Placement placement = three_stages();
    placement.set_batches_under_way(under_way);
    std::atomic<int64_t> ran{0};
    const auto work = [&](int64_t, StageTurn& turn) {
      turn.enter(2);
      ++ran;
    };
    int64_t begin = 0;
    int windows = 0;
    while (begin < 50) {
      const int64_t next = run_in_turns(placement, begin, 50, work, [] { return true; });
      ASSERT_GT(next, begin);
      begin = next;
      EXPECT_EQ(ran, begin);
      ++windows;
    }
    EXPECT_GE(windows, 50 / static_cast<int>(3 * under_way));
  }
}

}  // namespace
}  // namespace lancet
