#include "lancet/runtime/communicator.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/FlightRecorder.hpp>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/distributed/thread_ranks.h"
#include "lancet/runtime/devices.h"
#include "support/thread_ranks.h"

namespace lancet {
namespace {

bool has_same_bits(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         torch::equal(a.contiguous().view(-1).view(torch::kByte), b.contiguous().view(-1).view(torch::kByte));
}

/// Rank's own values: of magnitudes so far apart that the order of a sum shows in its bits.
Tensor values_of(int64_t rank, std::vector<int64_t> shape, at::ScalarType type) {
  torch::manual_seed(static_cast<uint64_t>(100 + rank));
  return (torch::randn(shape, torch::kDouble) * std::pow(1e5, static_cast<double>(rank % 3))).to(type);
}

class OnRanks : public ::testing::TestWithParam<int64_t> {};

TEST_P(OnRanks, SumIsInTheOrderOfRanksWithTheSameBitsEverywhere) {
  const int64_t n = GetParam();
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kLong})
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {1}, {7, 5}, {0, 3}, {1023}}) {
      std::vector<Tensor> given;
      for (int64_t rank = 0; rank < n; ++rank) given.push_back(values_of(rank, shape, type));
      Tensor expected = given[0].clone();
      for (int64_t rank = 1; rank < n; ++rank) expected += given[static_cast<size_t>(rank)];
      std::atomic<int64_t> equal = 0;
      run_as_ranks(n, [&](Communicator& ranks) {
        Tensor own = given[static_cast<size_t>(ranks.rank())].clone();
        ranks.sum(own);
        equal += has_same_bits(own, expected) ? 1 : 0;
      });
      EXPECT_EQ(equal, n) << toString(type) << " " << shape_text(shape);
    }
}

TEST_P(OnRanks, SumWritesThroughAViewThatIsNotContiguous) {
  const int64_t n = GetParam();
  run_as_ranks(n, [&](Communicator& ranks) {
    Tensor whole = torch::arange(12, torch::kDouble).view({3, 4});
    Tensor column = whole.select(1, 2);
    ranks.sum(column);
    EXPECT_TRUE(torch::equal(whole.select(1, 2), torch::tensor({2.0, 6.0, 10.0}, torch::kDouble) * n));
    EXPECT_TRUE(torch::equal(whole.select(1, 1), torch::tensor({1.0, 5.0, 9.0}, torch::kDouble)));
  });
}

TEST_P(OnRanks, GatherAndBroadcastKeepEveryByte) {
  const int64_t n = GetParam();
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes.push_back(static_cast<char>(i));
  run_as_ranks(n, [&](Communicator& ranks) {
    EXPECT_EQ(ranks.size(), n);
    const std::string own(static_cast<size_t>(ranks.rank() * 3), static_cast<char>('a' + ranks.rank()));
    const std::vector<std::string> gathered = ranks.gather(own);
    ASSERT_EQ(gathered.size(), static_cast<size_t>(n));
    for (int64_t rank = 0; rank < n; ++rank)
      EXPECT_EQ(gathered[static_cast<size_t>(rank)],
                std::string(static_cast<size_t>(rank * 3), static_cast<char>('a' + rank)));
    EXPECT_EQ(ranks.broadcast(ranks.is_root() ? all_bytes : "of others"), all_bytes);
    EXPECT_EQ(ranks.broadcast(ranks.is_root() ? "" : "of others"), "");
    ranks.barrier();
  });
}

TEST_P(OnRanks, BroadcastGivesAnyTensorBitByBit) {
  const Tensor special = torch::tensor({0.0, -0.0, 1.0 / 3.0, std::nan(""), HUGE_VAL, 1e-40}, torch::kDouble);
  for (const at::ScalarType type :
       {at::kBFloat16, at::kHalf, at::kFloat, at::kDouble, at::kLong, at::kBool, at::kByte}) {
    const bool is_whole = at::isIntegralType(type, /*includeBool=*/true);
    const Tensor root = (is_whole ? torch::arange(6) % 2 : special).to(type).view({2, 3}).t();
    run_as_ranks(GetParam(), [&](Communicator& ranks) {
      EXPECT_TRUE(has_same_bits(ranks.broadcast(ranks.is_root() ? root : Tensor(), Placement::host()), root));
      EXPECT_EQ(ranks.broadcast(ranks.is_root() ? root.sum() : Tensor(), Placement::host()).dim(), 0);
      EXPECT_EQ(ranks.broadcast(torch::empty({0, 4}, type), Placement::host()).sizes(), (std::vector<int64_t>{0, 4}));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, OnRanks, ::testing::Values(1, 2, 3, 4));

TEST(Communicator, SumsWhatDoesNotFitOnePiece) {
  const int64_t length = (int64_t{64} << 20) / 8 + 1001;
  run_as_ranks(2, [&](Communicator& ranks) {
    Tensor own = torch::arange(length, torch::kDouble) * static_cast<double>(1 + ranks.rank());
    ranks.sum(own);
    EXPECT_TRUE(torch::equal(own, torch::arange(length, torch::kDouble) * 3.0));
  });
}

/// Wherever it comes from: a stage within others, a stage that the others are beyond, every rank at once.
TEST_P(OnRanks, ANumericErrorEndsAnAttemptOnAllAndTheJobGoesOn) {
  const int64_t n = GetParam();
  std::atomic<int64_t> ended = 0;
  run_as_ranks(n, [&](Communicator& ranks) {
    const int64_t failing = n - 1;
    const auto expect_ended = [&](const std::optional<std::string>& message) {
      ASSERT_TRUE(message.has_value());
      EXPECT_NE(message->find("not definite"), std::string::npos) << *message;
      EXPECT_EQ(ranks.gather(*message), std::vector<std::string>(static_cast<size_t>(n), *message));
      ++ended;
    };
    for (int repeat = 0; repeat < 2; ++repeat) {
      expect_ended(ranks.attempt("method", [&] {
        ranks.run_collectively("outer", [&] {
          ranks.run_collectively("solve", [&] {
            if (ranks.rank() == failing) throw NumericError("not definite");
          });
          ADD_FAILURE() << "rank " << ranks.rank() << " went on";
        });
      }));
      expect_ended(ranks.attempt("method", [&] {
        if (ranks.rank() == failing) throw NumericError("not definite");
        ranks.run_collectively("values", [&] { ranks.broadcast("from root"); });
        ranks.gather("");
      }));
      expect_ended(ranks.attempt("method", [] { throw NumericError("not definite"); }));
      EXPECT_EQ(ranks.attempt("method", [&] { ranks.run_collectively("solve", [] {}); }), std::nullopt);
      EXPECT_EQ(ranks.gather("x").size(), static_cast<size_t>(n));
    }
  });
  EXPECT_EQ(ended, 6 * n);
}

TEST(Communicator, OtherErrorsOfAnAttemptEndTheJob) {
  std::atomic<int> told = 0;
  run_as_ranks(3, [&](Communicator& ranks) {
    try {
      ranks.attempt("method", [&] {
        ranks.run_collectively("export", [&] {
          if (ranks.rank() == 1) throw CheckpointError("disk full");
        });
      });
      ADD_FAILURE() << "rank " << ranks.rank() << " went on";
    } catch (const CheckpointError&) {
      EXPECT_EQ(ranks.rank(), 1);
    } catch (const CollectiveError& error) {
      told += std::string(error.what()).find("disk full") != std::string::npos ? 1 : 0;
    }
  });
  EXPECT_EQ(told, 2);
}

TEST(Communicator, AFailureEndsAllRanksWithItsMessage) {
  for (const int64_t failing : {0, 2}) {
    std::mutex mutex;
    std::vector<std::string> messages(3);
    std::atomic<int> reached = 0;
    run_as_ranks(3, [&](Communicator& ranks) {
      ranks.run_collectively("first", [] {});
      try {
        ranks.run_collectively("values", [&] {
          if (ranks.rank() == failing) throw NumericError("loss is nan");
          ++reached;
        });
        ADD_FAILURE() << "rank " << ranks.rank() << " went on";
      } catch (const NumericError& error) {
        EXPECT_EQ(ranks.rank(), failing);
        messages[static_cast<size_t>(ranks.rank())] = error.what();
      } catch (const CollectiveError& error) {
        EXPECT_NE(ranks.rank(), failing);
        messages[static_cast<size_t>(ranks.rank())] = error.what();
      }
    });
    EXPECT_EQ(reached, 2);
    for (int64_t rank = 0; rank < 3; ++rank)
      EXPECT_EQ(messages[static_cast<size_t>(rank)],
                rank == failing ? "loss is nan"
                                : cat("rank ", failing, " on this process, stage 'values': failed: loss is nan"));
  }
}

TEST(Communicator, AFailureIsHeardInWhateverCollectiveTheOthersAre) {
  std::atomic<int> heard = 0;
  run_as_ranks(4, [&](Communicator& ranks) {
    try {
      ranks.run_collectively("edit", [&] {
        Tensor own = torch::ones({3});
        if (ranks.rank() == 0) ranks.sum(own);
        if (ranks.rank() == 1) throw PlacementError("full");
        if (ranks.rank() == 2) ranks.broadcast(std::string("text"));
        if (ranks.rank() == 3) ranks.run_collectively("inner", [] {});
      });
      ADD_FAILURE() << "rank " << ranks.rank() << " went on";
    } catch (const PlacementError& error) {
      EXPECT_EQ(ranks.rank(), 1);
    } catch (const CollectiveError& error) {
      EXPECT_STREQ(error.what(), "rank 1 on this process, stage 'edit': failed: full");
      ++heard;
    }
  });
  EXPECT_EQ(heard, 3);
}

TEST(Communicator, ARankThatLeavesEndsThoseThatWait) {
  std::atomic<int> ended = 0;
  run_as_ranks(3, [&](Communicator& ranks) {
    if (ranks.rank() == 1) return;
    EXPECT_THROW(ranks.barrier(), CollectiveError);
    ++ended;
  });
  EXPECT_EQ(ended, 2);
  EXPECT_THROW(run_as_ranks(3,
                            [](Communicator& ranks) {
                              if (ranks.rank() == 1) throw ConfigError("of rank 1");
                              ranks.barrier();
                            }),
               ConfigError);
}

/// Though another thread set another number last, as one within run_independent() does.
TEST(Communicator, RanksComputeOnAsManyThreadsAsWhoStartsThem) {
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  std::thread([] { at::set_num_threads(1); }).join();
  std::atomic<int64_t> ranks_on_three = 0;
  const auto count = [&](Communicator&) { ranks_on_three += at::get_num_threads() == 3 ? 1 : 0; };
  run_as_ranks(2, count);
  testing::run_ranks(2, count);
  EXPECT_EQ(ranks_on_three, 4);
  EXPECT_EQ(at::get_num_threads(), 3);
  at::set_num_threads(before);
}

TEST(Communicator, UnequalTensorsAreNamedOnEveryRank) {
  std::atomic<int> named = 0;
  run_as_ranks(3, [&](Communicator& ranks) {
    Tensor own = torch::zeros({ranks.rank() == 2 ? 5 : 4}, torch::kFloat);
    try {
      ranks.sum(own);
    } catch (const CollectiveError& error) {
      named += std::string(error.what()).find("[5]") != std::string::npos ? 1 : 0;
    }
  });
  EXPECT_EQ(named, 3);
  EXPECT_THROW(run_as_ranks(2,
                            [](Communicator& ranks) {
                              Tensor own = torch::zeros({4}, torch::kBFloat16);
                              ranks.sum(own);
                            }),
               std::logic_error);
}

TEST(Communicator, RanksThatAreOutOfStepAreNamed) {
  std::atomic<int> named = 0;
  run_as_ranks(2, [&](Communicator& ranks) {
    try {
      if (ranks.is_root())
        ranks.barrier();
      else
        ranks.run_collectively("values", [] {});
    } catch (const CollectiveError& error) {
      named += std::string(error.what()).find("out of step") != std::string::npos ? 1 : 0;
    }
  });
  EXPECT_EQ(named, 2);
}

/// Torch's own way would end the process from a thread, and it reads this when a group is made.
TEST(Communicator, HearsOfNcclsErrorsItself) {
  for (const char* name :
       {"TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ENABLE_MONITORING"})
    ::unsetenv(name);
  run_as_ranks(1, [](Communicator&) {
    EXPECT_STREQ(std::getenv("TORCH_NCCL_BLOCKING_WAIT"), "1");
    EXPECT_STREQ(std::getenv("TORCH_NCCL_ASYNC_ERROR_HANDLING"), "0");
    EXPECT_STREQ(std::getenv("TORCH_NCCL_ENABLE_MONITORING"), "0");
  });
}

/// Ranks that are threads share torch's recorder of collectives, which is not made for threads.
TEST(Communicator, RecordsNoCollectives) {
  run_as_ranks(4, [](Communicator& ranks) { ranks.barrier(); });
  const auto& recorder = *c10d::FlightRecorder<c10::Event>::get();
  EXPECT_FALSE(recorder.enabled_);
  EXPECT_TRUE(recorder.all_pg_status_.empty());
}

TEST(Communicator, NcclServesTensorsOnAGpu) {
  const DeviceBudget first = find_devices(std::vector<std::string>{"auto"}).devices.front();
  if (first.is_host()) GTEST_SKIP() << "this machine has no GPU";
  run_as_ranks(1, [&](Communicator& ranks) {
    Tensor own = torch::arange(5, torch::kDouble).to(first.device);
    ranks.sum(own);
    EXPECT_TRUE(torch::equal(own.to(Placement::host()), torch::arange(5, torch::kDouble)));
    const Tensor received = ranks.broadcast(own, first.device);
    EXPECT_EQ(received.device(), first.device);
    EXPECT_TRUE(torch::equal(received.to(Placement::host()), torch::arange(5, torch::kDouble)));
  });
}

TEST(Communicator, ASingleProcessThrowsItsOwnError) {
  SingleProcess alone;
  EXPECT_THROW(alone.run_collectively("stage", [] { throw PlacementError("full"); }), PlacementError);
  EXPECT_EQ(alone.gather("x"), std::vector<std::string>{"x"});
  Tensor ones = torch::ones({3});
  alone.sum(ones);
  EXPECT_TRUE(torch::equal(ones, torch::ones({3})));
}

}  // namespace
}  // namespace lancet
