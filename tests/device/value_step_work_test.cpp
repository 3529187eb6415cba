// What a step of value optimisation asks of a device, counted: a GPU's time for a small batch is the number of kernels.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "lancet/training/values.h"
#include "support/edit_setup.h"
#include "support/emulated_kernels.h"
#include "support/fake_device.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::FakeWork;

/// Values of so many requests in so many contexts, none of which is ever done.
OptimizedValues some_steps(const testing::TinyModel& tiny, at::ScalarType type, int64_t steps, int64_t count) {
  const CausalLM model = tiny.load(type, testing::fake_devices(1));
  const std::vector<PreparedRequest> requests = prepare_requests(
      *tiny.tokenizer, testing::some_requests(count), {testing::kContexts.begin(), testing::kContexts.begin() + count});
  return optimize_values(model, requests, 1, {.steps = steps, .lr = 0.1, .stop_loss = 0}, {alone()});
}

/// What a GPU is asked for.
struct DeviceWork {
  int64_t launches = 0;  ///< operations of torch's, each counted as one, and kernels of our own
  int64_t uploads = 0;
  int64_t reads = 0;

  friend DeviceWork operator-(const DeviceWork& a, const DeviceWork& b) {
    return {a.launches - b.launches, a.uploads - b.uploads, a.reads - b.reads};
  }
};

/// Measures all steps together. Our kernels run as on a GPU, by their own text: each launch is one.
DeviceWork work_of_steps(int64_t n_layers, int64_t steps) {
  const testing::TinyModel tiny({.n_layers = n_layers});
  testing::EmulatedKernels kernels(testing::ThreadOrder::kAscending);
  const LauncherScope scope(kernels);
  const FakeWork before = testing::fake_work();
  some_steps(tiny, at::kBFloat16, steps, /*count=*/1);
  const FakeWork work = testing::fake_work() - before;
  return {work.operations + kernels.launches(), work.uploads, work.reads};
}

/// Measures one step among others, in a model of so many layers.
DeviceWork work_of_a_step(int64_t n_layers) { return work_of_steps(n_layers, 3) - work_of_steps(n_layers, 2); }

void expect_at_most(const DeviceWork& work, const DeviceWork& most, const char* of) {
  std::cout << of << ": " << work.launches << " launches, " << work.uploads << " uploads, " << work.reads << " reads\n";
  EXPECT_LE(work.launches, most.launches) << of;
  EXPECT_LE(work.uploads, most.uploads) << of;
  EXPECT_LE(work.reads, most.reads) << of;
}

TEST(ValueStepWork, IsCountedForALayerAndForTheRest) {
  const DeviceWork four = work_of_a_step(4), layer = work_of_a_step(5) - four;
  expect_at_most(layer, {.launches = 19}, "a layer of a step");
  expect_at_most(four - layer - layer, {.launches = 103, .uploads = 0, .reads = 1}, "the rest of a step");
}

/// One product for all projections of an input, their heads split and turned by one kernel, the residual stream's sums
/// taken by norms: in f64 they find what chains of torch's operations do.
TEST(ValueStepWork, KernelsFindTheSameValues) {
  const testing::TinyModel tiny({.n_layers = 4});
  const Tensor expected_ND = some_steps(tiny, at::kDouble, 2, 2).z_ND;
  testing::EmulatedKernels kernels(testing::ThreadOrder::kDescending);
  const LauncherScope scope(kernels);
  EXPECT_LE(testing::nmse(some_steps(tiny, at::kDouble, 2, 2).z_ND, expected_ND), testing::kExactF64);
  EXPECT_GT(kernels.launches(), 0);
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
