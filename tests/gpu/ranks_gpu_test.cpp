// Ranks that share one device: what they tell each other goes through the host, since NCCL wants a device for each.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <atomic>
#include <cstdlib>

#include "lancet/core/error.h"
#include "lancet/distributed/thread_ranks.h"
#include "support/edit_run.h"
#include "support/on_device.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::EditRun;

constexpr std::chrono::seconds kLimit{120};

class RanksOnDevice : public testing::OnDevice {};
LANCET_ON_EACH_DEVICE(RanksOnDevice);

/// An environment variable while this lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST_P(RanksOnDevice, TwoSumAndBroadcast) {
  std::atomic<int> done = 0;
  testing::run_within(kLimit, "two ranks on one device", [&] {
    run_as_ranks(2, [&](Communicator& ranks) {
      Tensor own = torch::full({400, 3}, 1.0 + static_cast<double>(ranks.rank()), torch::kDouble).to(device());
      ranks.sum(own);
      EXPECT_EQ(own.device().type(), device().type());
      EXPECT_TRUE(torch::equal(own.to(Placement::host()), torch::full({400, 3}, 3.0, torch::kDouble)));
      const Tensor root = torch::arange(6, torch::kBFloat16).to(device());
      const Tensor received = ranks.broadcast(ranks.is_root() ? root : Tensor(), device());
      EXPECT_EQ(received.device().type(), device().type());
      EXPECT_TRUE(torch::equal(received.to(Placement::host()), torch::arange(6, torch::kBFloat16)));
      ++done;
    });
  });
  EXPECT_EQ(done, 2);
}

TEST_P(RanksOnDevice, TwoMakeTheEditOfOne) {
  const testing::TinyModel tiny;
  const EditRun single = testing::run_edit(tiny, {Placement::host()}, alone());
  std::vector<EditRun> runs(2);
  testing::run_within(kLimit, "an edit by two ranks", [&] {
    run_as_ranks(2, [&](Communicator& ranks) {
      runs[static_cast<size_t>(ranks.rank())] = testing::run_edit(tiny, {device()}, ranks);
    });
  });
  ASSERT_EQ(runs[0].deltas.size(), single.deltas.size());
  for (size_t i = 0; i < single.deltas.size(); ++i) {
    EXPECT_LE(testing::nmse(runs[0].deltas[i].second, single.deltas[i].second), 1e-18);
    EXPECT_TRUE(runs[1].weights[i].second.equal(runs[0].weights[i].second)) << "replicas have grown apart";
  }
}

/// The error that is seen is the failed rank's own, and nobody waits for it.
void expect_the_end_of_both(at::Device device, const char* fault) {
  const testing::TinyModel tiny;
  const Variable variable("LANCET_FAULT", fault);
  std::string message;
  testing::run_within(kLimit, fault, [&] {
    try {
      run_as_ranks(2, [&](Communicator& ranks) { testing::run_edit(tiny, {device}, ranks); });
    } catch (const NumericError& error) {
      message = error.what();
    }
  });
  EXPECT_NE(message.find("LANCET_FAULT"), std::string::npos) << fault << ": " << message;
}

TEST_P(RanksOnDevice, ARankThatFailsInAStageEndsBoth) {
  for (const char* fault :
       {"rank=1,stage=statistics,do=throw", "rank=1,stage=values,do=throw", "rank=0,stage=solve,do=throw"})
    expect_the_end_of_both(device(), fault);
}

}  // namespace
}  // namespace lancet
