// Graphs of steps, emulated on fake devices, which know what comes from the host and goes there.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <iostream>
#include <stdexcept>

#include "lancet/core/error.h"
#include "lancet/runtime/send.h"
#include "lancet/runtime/step_graph.h"
#include "lancet/training/values.h"
#include "support/edit_setup.h"
#include "support/emulated_graphs.h"
#include "support/fake_device.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::EmulatedGraphs;
using testing::FakeWork;
using testing::TinyModel;

std::string refusal_on(at::Device device, const StepFunction& function) {
  EmulatedGraphs maker;
  try {
    maker.begin(device)->capture(function);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

TEST(EmulatedGraphsOnDevices, WhatComesFromTheHostOrGoesThereIsRefused) {
  const at::Device device = testing::fake_devices(1)[0];
  const Tensor x = torch::arange(4, torch::kDouble).to(device), host = torch::ones({4}, torch::kDouble);
  EXPECT_EQ(refusal_on(device, [&] { return std::vector<Tensor>{x * 2 + torch::zeros_like(x)}; }), "");
  EXPECT_NE(refusal_on(device, [&] { return std::vector<Tensor>{x + sent_to(device, host)}; }).find("to a device"),
            std::string::npos);
  EXPECT_NE(refusal_on(device, [&] { return std::vector<Tensor>{x.clone().copy_(host)}; }).find("to a device"),
            std::string::npos);
  EXPECT_NE(refusal_on(device, [&] { return std::vector<Tensor>{x * x.to(Placement::host()).numel()}; })
                .find("brings a tensor to the host"),
            std::string::npos);
  EXPECT_NE(refusal_on(device, [&] { return std::vector<Tensor>{x * x.sum().item<double>()}; }).find("reads a number"),
            std::string::npos);
}

/// Results outlive their stream: whoever uses them elsewhere would lose memory that the stream hands on.
TEST(EmulatedGraphsOnDevices, WhatIsHandedOverMustBeRecordedWhereItIsUsed) {
  const at::Device device = testing::fake_devices(1)[0];
  for (const bool forgets : {false, true}) {
    EmulatedGraphs maker;
    if (forgets) maker.forget_streams();
    Tensor result;
    {
      const std::unique_ptr<StepGraphs> graphs = maker.begin(device);
      result = torch::ones({8}, torch::device(device)) * 2;
      graphs->hand_over(result);
    }
    const Tensor used = result + 1;
    result.reset();
    EXPECT_EQ(testing::take_fake_memory_problems().size(), forgets ? 1U : 0U);
  }
}

struct GraphsOnFakes : public ::testing::Test {
  TinyModel tiny;
  std::vector<PreparedRequest> requests =
      prepare_requests(*tiny.tokenizer, testing::some_requests(6), testing::kContexts);
  ValueOptions options{.steps = 8, .lr = 0.1, .stop_loss = 0};
  EmulatedGraphs graphs;

  OptimizedValues optimize(const std::vector<at::Device>& devices, LaunchMode launch, int64_t layer) {
    const GraphMakerScope scope(graphs);
    const Placement placement = plan_placement(tiny.config.n_layers, devices, at::kBFloat16);
    const CausalLM model = CausalLM::load(tiny.checkpoint, tiny.config, placement);
    return optimize_values(model, requests, layer, options, {alone(), nullptr, launch});
  }

  void expect_same_values(const std::vector<at::Device>& devices, int64_t layer) {
    const OptimizedValues each = optimize(devices, LaunchMode::kEachOperation, layer);
    const OptimizedValues ours = optimize(devices, LaunchMode::kGraph, layer);
    EXPECT_TRUE(ours.z_ND.to(Placement::host()).equal(each.z_ND.to(Placement::host())));
    EXPECT_EQ(ours.delta_norms, each.delta_norms);
    for (size_t i = 0; i < requests.size(); ++i) {
      ASSERT_EQ(ours.losses[i].size(), each.losses[i].size());
      for (size_t step = 0; step < each.losses[i].size(); ++step)
        EXPECT_EQ(ours.losses[i][step].total, each.losses[i][step].total);
    }
  }
};

TEST_F(GraphsOnFakes, AStepSendsNothingAndIsReadOnce) {
  expect_same_values(testing::fake_devices(1), 1);
  EXPECT_EQ(graphs.captures(), 1);
  EXPECT_EQ(graphs.replays(), *options.steps - 1);
  const auto work_of = [&](int64_t steps) {
    options.steps = steps;
    const FakeWork before = testing::fake_work();
    optimize(testing::fake_devices(1), LaunchMode::kGraph, 1);
    return testing::fake_work() - before;
  };
  const FakeWork step = work_of(7) - work_of(6);
  EXPECT_EQ(step.uploads, 0);
  EXPECT_EQ(step.reads, 1);
}

TEST_F(GraphsOnFakes, OtherGroupsAndShapesToo) {
  options.contexts_per_step = 2;
  expect_same_values(testing::fake_devices(1), 1);
  EXPECT_EQ(graphs.captures(), 2);
  options = {.steps = 12, .lr = 0.5, .kl = 1, .stop_loss = 1};
  options.site = ValueSite::kMlpAndAttnOut;
  options.stop = ValueStop::kLossOrPredicted;
  expect_same_values(testing::fake_devices(1), 1);
  expect_same_values(testing::fake_devices(1), tiny.config.n_layers - 1);
}

/// Layers 0-1 and 2-3.
TEST_F(GraphsOnFakes, LowerLayersMayLieElsewhere) {
  options.batch = 2;
  expect_same_values(testing::fake_devices(2), 2);
  EXPECT_EQ(graphs.captures(), 3);
  expect_same_values({Placement::host(), testing::fake_devices(1)[0]}, 3);
  try {
    optimize(testing::fake_devices(2), LaunchMode::kGraph, 1);
    FAIL();
  } catch (const PlacementError& error) {
    EXPECT_NE(std::string(error.what()).find("expected on one GPU, found on several devices: fake:0: layers 0-1"),
              std::string::npos)
        << error.what();
  }
}

/// What a batch holds at its fullest is what one without graphs holds, and the outputs.
TEST_F(GraphsOnFakes, ABatchTakesNoMoreMemoryButForItsOutputs) {
  const auto peak_of = [&](LaunchMode launch) {
    testing::reset_fake_peaks();
    const int64_t before = testing::fake_bytes_live(0);
    optimize(testing::fake_devices(1), launch, 1);
    return testing::fake_bytes_peak(0) - before;
  };
  const int64_t each = peak_of(LaunchMode::kEachOperation), ours = peak_of(LaunchMode::kGraph);
  const int64_t rows = static_cast<int64_t>(requests.size()) * tiny.config.d_model * 4;
  std::cout << "peaks: " << each << " bytes, with graphs " << ours << "\n";
  EXPECT_LE(ours, each + 6 * rows);
}

}  // namespace
}  // namespace lancet
