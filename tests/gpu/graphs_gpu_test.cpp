// Steps of value optimisation as CUDA graphs, beside the same steps launched kernel by kernel.
#include <c10/cuda/CUDACachingAllocator.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/memory.h"
#include "lancet/runtime/step_graph.h"
#include "lancet/training/values.h"
#include "support/edit_setup.h"
#include "support/on_device.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TinyModel;

class GraphsOnDevice : public testing::OnDevice {
 protected:
  void SetUp() override {
    testing::OnDevice::SetUp();
    if (!IsSkipped() && !graph_maker().serves(device())) GTEST_SKIP() << "only a GPU has graphs";
  }

  CausalLM load(at::ScalarType dtype) const {
    const Placement placement = plan_placement(tiny_.config.n_layers, std::vector{device()}, dtype);
    return CausalLM::load(tiny_.checkpoint, tiny_.config, placement);
  }

  OptimizedValues optimize(at::ScalarType dtype, LaunchMode launch, const ValueOptions& options) const {
    return optimize_values(load(dtype), requests_, 1, options, {alone(), nullptr, launch});
  }

  /// A gradient's sums may come in another order where a kernel adds as it can.
  void expect_same_values(const ValueOptions& options) const {
    for (const auto& [dtype, most_nmse] :
         {std::pair{at::kDouble, 1e-18}, std::pair{at::kFloat, 1e-8}, std::pair{at::kBFloat16, 1e-3}}) {
      const OptimizedValues each = optimize(dtype, LaunchMode::kEachOperation, options);
      const OptimizedValues graphs = optimize(dtype, LaunchMode::kGraph, options);
      EXPECT_GT(std::ranges::max(each.delta_norms), 0);
      EXPECT_LE(nmse(graphs.z_ND, each.z_ND), most_nmse) << at::toString(dtype);
      EXPECT_EQ(graphs.batching.halvings, 0);
      ::testing::Test::RecordProperty(at::toString(dtype), cat(nmse(graphs.z_ND, each.z_ND)));
      if (dtype != at::kDouble) continue;
      for (size_t i = 0; i < requests_.size(); ++i) {
        ASSERT_EQ(graphs.losses[i].size(), each.losses[i].size()) << i;
        for (size_t step = 0; step < each.losses[i].size(); ++step)
          EXPECT_NEAR(graphs.losses[i][step].total, each.losses[i][step].total, 1e-9) << i << ", step " << step;
      }
    }
  }

  /// Words of what a capture ends with.
  static std::string failure_of(StepGraphs& graphs, const StepFunction& function) {
    try {
      graphs.capture(function);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TinyModel tiny_;
  std::vector<PreparedRequest> requests_ =
      prepare_requests(*tiny_.tokenizer, testing::some_requests(12), testing::kContexts);
};
LANCET_ON_EACH_DEVICE(GraphsOnDevice);

TEST_P(GraphsOnDevice, ValuesAreThoseOfSingleLaunches) { expect_same_values({.steps = 10, .lr = 0.1, .stop_loss = 0}); }

TEST_P(GraphsOnDevice, AlsoInGroupsOfContextsAndInManyBatches) {
  expect_same_values({.steps = 10, .lr = 0.1, .stop_loss = 0, .contexts_per_step = 2, .batch = 4});
}

TEST_P(GraphsOnDevice, AlsoWhenRequestsLeaveAndFactorsChange) {
  ValueOptions options{.steps = 20, .lr = 0.1, .stop_loss = 0};
  std::vector<double> halfway;
  for (const auto& losses : optimize(at::kDouble, LaunchMode::kEachOperation, options).losses)
    halfway.push_back(losses.at(9).total);
  std::ranges::sort(halfway);
  options.stop_loss = (halfway[5] + halfway[6]) / 2;
  expect_same_values(options);
  options = {.steps = 14, .lr = 0.5, .kl = 1, .stop_loss = 0};
  options.site = ValueSite::kMlpAndAttnOut;
  options.stop = ValueStop::kLossOrPredicted;
  const OptimizedValues each = optimize(at::kDouble, LaunchMode::kEachOperation, options);
  EXPECT_LE(nmse(optimize(at::kDouble, LaunchMode::kGraph, options).z_ND, each.z_ND), 1e-16);
}

TEST_P(GraphsOnDevice, ACaptureThatFailsIsToldAndTheNextOneWorks) {
  const auto options = torch::TensorOptions(torch::kDouble).device(device());
  const Tensor x = torch::arange(4, options);
  const auto doubled = [&] { return std::vector<Tensor>{2 * x}; };
  const std::unique_ptr<StepGraphs> graphs = graph_maker().begin(device());
  doubled();
  const std::string read = failure_of(*graphs, [&] { return std::vector<Tensor>{x * x.sum().item<double>()}; });
  EXPECT_NE(read.find("could not be captured as a CUDA graph: "), std::string::npos) << read;
  EXPECT_NE(read.find("Set run.cuda_graphs: false"), std::string::npos) << read;
  EXPECT_EQ(failure_of(*graphs, [&]() -> std::vector<Tensor> { throw Cancelled(); }), "cancelled");
  for (int i = 0; i < 2; ++i) {
    const std::unique_ptr<StepGraph> graph = graphs->capture(doubled);
    x.add_(1);
    graph->replay();
    EXPECT_TRUE(graph->outputs().at(0).equal(2 * x));
  }
}

/// Two graphs of one pool, and what each holds while the other is replayed in turn.
TEST_P(GraphsOnDevice, GraphsInTurnKeepTheirInputsApart) {
  const auto options = torch::TensorOptions(torch::kDouble).device(device());
  Tensor x = torch::arange(1 << 20, options);
  const std::unique_ptr<StepGraphs> graphs = graph_maker().begin(device());
  const auto sum_of = [&](double factor) { return std::vector<Tensor>{(x * factor).square().sum()}; };
  sum_of(1);
  const std::unique_ptr<StepGraph> one = graphs->capture([&] { return sum_of(1); });
  const std::unique_ptr<StepGraph> two = graphs->capture([&] { return sum_of(2); });
  for (int i = 0; i < 3; ++i) {
    x.add_(1);
    one->replay();
    const double of_one = one->outputs().at(0).item<double>();
    two->replay();
    EXPECT_DOUBLE_EQ(two->outputs().at(0).item<double>(), 4 * of_one);
    EXPECT_DOUBLE_EQ(of_one, x.square().sum().item<double>());
  }
}

/// Memory that suffices for no capture, nor for its beginning, as torch's allocator says; then it is there again.
TEST_P(GraphsOnDevice, ACaptureWithoutMemoryIsOutOfMemoryAndLeavesNothingOpen) {
  namespace allocator = c10::cuda::CUDACachingAllocator;
  const auto options = torch::TensorOptions(torch::kByte).device(device());
  const Tensor x = torch::ones({1}, options);
  const auto large = [&] { return std::vector<Tensor>{torch::zeros({256 << 20}, options) + x}; };
  const std::unique_ptr<StepGraphs> graphs = graph_maker().begin(device());
  large();
  allocator::emptyCache();
  const double total = static_cast<double>(device_memory(device()).value().total_bytes);
  const auto held = allocator::getDeviceStats(device().index()).reserved_bytes[0].current;
  for (const int64_t more : {128 << 20, 0}) {
    allocator::setMemoryFraction(static_cast<double>(held + more) / total, device().index());
    EXPECT_THROW(graphs->capture(large), c10::OutOfMemoryError) << more;
  }
  allocator::setMemoryFraction(1.0, device().index());
  const std::unique_ptr<StepGraph> graph = graphs->capture(large);
  graph->replay();
  EXPECT_EQ(graph->outputs().at(0).sum().item<int64_t>(), 256 << 20);
}

}  // namespace
}  // namespace lancet
