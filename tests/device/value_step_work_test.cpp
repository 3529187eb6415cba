// What a step of value optimisation asks of a device, counted: a GPU's time for a small batch is the number of kernels.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "lancet/training/values.h"
#include "support/edit_setup.h"
#include "support/fake_device.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::FakeWork;

/// Measures all steps together of six requests in three contexts, none of which is ever done.
FakeWork work_of_steps(int64_t n_layers, int64_t steps) {
  const testing::TinyModel tiny({.n_layers = n_layers});
  const CausalLM model = tiny.load(at::kBFloat16, testing::fake_devices(1));
  const std::vector<PreparedRequest> requests =
      prepare_requests(*tiny.tokenizer, testing::some_requests(6), testing::kContexts);
  const ValueOptions options{.steps = steps, .lr = 0.1, .stop_loss = 0};
  const FakeWork before = testing::fake_work();
  optimize_values(model, requests, 1, options, {alone()});
  return testing::fake_work() - before;
}

/// Measures one step among others, in a model of so many layers.
FakeWork work_of_a_step(int64_t n_layers) { return work_of_steps(n_layers, 5) - work_of_steps(n_layers, 4); }

void expect_at_most(const FakeWork& work, const FakeWork& most, const char* of) {
  std::cout << of << ": " << work.operations << " operations, " << work.uploads << " uploads ("
            << work.uploads_under_way << " of them under way), " << work.reads << " reads\n";
  EXPECT_LE(work.operations, most.operations) << of;
  EXPECT_LE(work.uploads, most.uploads) << of;
  EXPECT_LE(work.reads, most.reads) << of;
}

TEST(ValueStepWork, IsCountedForALayerAndForTheRest) {
  const FakeWork four = work_of_a_step(4), layer = work_of_a_step(5) - four;
  // attention of ragged rows is a chain of operations here; kernels of our own are three in place of it
  expect_at_most(layer, {.operations = 142}, "a layer of a step");
  expect_at_most(four - layer - layer, {.operations = 114, .uploads = 0, .reads = 1}, "the rest of a step");
}

/// What a batch sends when requests leave it comes from page-locked memory, and nobody waits.
TEST(ValueStepWork, NobodyWaitsWhenRequestsLeave) {
  const testing::TinyModel tiny({.n_layers = 3});
  const CausalLM model = tiny.load(at::kBFloat16, testing::fake_devices(1));
  const std::vector<PreparedRequest> requests =
      prepare_requests(*tiny.tokenizer, testing::some_requests(6), testing::kContexts);
  const auto optimize = [&](double stop_loss) {
    const ValueOptions options{.steps = 8, .lr = 0.1, .stop_loss = stop_loss};
    return optimize_values(model, requests, 1, options, {alone()});
  };
  std::vector<double> halfway;  // losses, of which half of the requests stay above the middle one
  for (const std::vector<ValueLoss>& losses : optimize(0).losses) halfway.push_back(losses.at(4).total);
  std::ranges::sort(halfway);
  std::set<size_t> ends;  // whoever is done last leaves nobody behind
  const auto work = [&](double stop_loss) {
    const FakeWork before = testing::fake_work();
    ends.clear();
    for (const std::vector<ValueLoss>& losses : optimize(stop_loss).losses) ends.insert(losses.size());
    return testing::fake_work() - before;
  };
  const FakeWork whole = work(0), shrunk = work(halfway[halfway.size() / 2]), leaving = shrunk - whole;
  const auto shrinks = static_cast<int64_t>(ends.size()) - 1;
  const int64_t blocking = leaving.uploads - leaving.uploads_under_way;
  std::cout << shrinks << " times: " << leaving.uploads << " uploads, " << blocking << " of them waited for\n";
  ASSERT_GT(shrinks, 0);
  EXPECT_GE(leaving.uploads_under_way, 8 * shrinks);
  EXPECT_EQ(blocking, 0);
}

}  // namespace
}  // namespace lancet
