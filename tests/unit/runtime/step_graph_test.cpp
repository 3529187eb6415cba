// What the tests' emulation of graphs refuses, so that what it lets pass is what a graph can do.
#include "lancet/runtime/step_graph.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <stdexcept>

#include "lancet/core/error.h"
#include "support/emulated_graphs.h"

namespace lancet {
namespace {

using testing::EmulatedGraphs;

/// Words of what `work` ends with; empty: with nothing.
std::string message_thrown(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

class EmulatedStep : public ::testing::Test {
 protected:
  EmulatedGraphs maker_;
  std::unique_ptr<StepGraphs> graphs_ = maker_.begin(Placement::host());
  Tensor x_ = torch::arange(4, torch::kDouble);

  std::string refusal_of_replay(const StepFunction& function, const std::function<void()>& change) {
    const std::unique_ptr<StepGraph> graph = graphs_->capture(function);
    if (const std::string early = message_thrown([&] { graph->replay(); }); !early.empty()) return "at once: " + early;
    change();
    return message_thrown([&] { graph->replay(); });
  }
};

TEST_F(EmulatedStep, AReplaySeesWhatTheInputsHoldAndWritesIntoTheSameOutputs) {
  Tensor leaf = x_.clone().requires_grad_(true);
  const std::unique_ptr<StepGraph> graph = graphs_->capture([&] {
    const Tensor y = (leaf * leaf).sum();
    return std::vector<Tensor>{torch::autograd::grad({y}, {leaf})[0], y.detach()};
  });
  const Tensor gradient = graph->outputs().at(0), value = graph->outputs().at(1);
  EXPECT_TRUE(gradient.isnan().all().item<bool>()) << "a capture computes nothing";
  for (const double factor : {1.0, 3.0}) {
    {
      const torch::NoGradGuard no_grad;
      leaf.copy_(factor * x_);
    }
    graph->replay();
    EXPECT_TRUE(gradient.equal(2 * factor * x_));
    EXPECT_EQ(value.item<double>(), (factor * x_).square().sum().item<double>());
  }
  EXPECT_EQ(maker_.captures(), 1);
  EXPECT_EQ(maker_.replays(), 2);
}

TEST_F(EmulatedStep, ATensorThatWasReplacedIsRefused) {
  const StepFunction twice = [&] { return std::vector<Tensor>{2 * x_}; };
  EXPECT_EQ(refusal_of_replay(twice, [&] { x_.fill_(7); }), "");
  const Tensor kept = x_;
  EXPECT_NE(refusal_of_replay(twice, [&] { x_ = x_.clone(); }).find("tensor 0 was replaced"), std::string::npos);
}

TEST_F(EmulatedStep, MemoryThatIsGoneIsRefused) {
  const StepFunction twice = [&] { return std::vector<Tensor>{2 * x_}; };
  EXPECT_NE(refusal_of_replay(twice, [&] { x_ = x_.clone(); }).find("memory that is gone"), std::string::npos);
}

TEST_F(EmulatedStep, ANumberOfTheHostThatChangedIsRefused) {
  double factor = 2;
  const StepFunction scaled = [&] { return std::vector<Tensor>{factor * x_}; };
  const std::string words = refusal_of_replay(scaled, [&] { factor = 2 + 1e-12; });
  EXPECT_NE(words.find("operation 0 was aten::mul("), std::string::npos) << words;
}

TEST_F(EmulatedStep, OtherOperationsAreRefused) {
  bool more = false;
  const StepFunction function = [&] { return std::vector<Tensor>{more ? (2 * x_).exp() : 2 * x_}; };
  const std::string words = refusal_of_replay(function, [&] { more = true; });
  EXPECT_NE(words.find("operation 1 was nothing, is aten::exp("), std::string::npos) << words;
}

TEST_F(EmulatedStep, AReadAndAWriteToAnInputAreRefused) {
  const auto capture = [&](const StepFunction& function) {
    return message_thrown([&] { graphs_->capture(function); });
  };
  EXPECT_NE(capture([&] { return std::vector<Tensor>{x_ * x_.sum().item<double>()}; }).find("reads a number"),
            std::string::npos);
  EXPECT_NE(capture([&] { return std::vector<Tensor>{x_.add_(1)}; }).find("aten::add_ writes to memory"),
            std::string::npos);
  EXPECT_EQ(capture([&] { return std::vector<Tensor>{x_.clone().add_(1)}; }), "");
}

TEST_F(EmulatedStep, OutOfMemoryIsTorchsErrorAndLeavesNothingOpen) {
  maker_.fail_captures(1);
  const StepFunction twice = [&] { return std::vector<Tensor>{2 * x_}; };
  EXPECT_THROW(graphs_->capture(twice), c10::OutOfMemoryError);
  EXPECT_EQ(maker_.captures(), 0);
  graphs_->capture(twice)->replay();
  EXPECT_EQ(maker_.captures(), 1);
}

/// Words of check_graphs.
std::string problem_of_placement(const std::vector<at::Device>& layers, int64_t first_layer) {
  const Placement placement(layers, at::kFloat);
  try {
    check_graphs(placement, first_layer);
  } catch (const PlacementError& error) {
    return error.what();
  }
  return "";
}

TEST(Graphs, ArePlacedOnOneGpu) {
  const at::Device host = Placement::host(), gpu(at::kCUDA, 0), other(at::kCUDA, 1);
  EXPECT_EQ(problem_of_placement({gpu, gpu, gpu}, 1), "");
  EXPECT_EQ(problem_of_placement({host, gpu, gpu}, 1), "");
  EXPECT_EQ(
      problem_of_placement({host, host, host}, 1),
      "run.cuda_graphs: steps of value optimisation take layers 1-2 and the head, expected on a GPU, found on cpu "
      "(cpu). Set run.cuda_graphs: false, or name one GPU that holds them in run.devices");
  EXPECT_NE(problem_of_placement({gpu, gpu, host}, 1).find("expected on a GPU, found on cpu"), std::string::npos);
  const std::string split = problem_of_placement({gpu, gpu, other}, 1);
  EXPECT_NE(split.find("expected on one GPU, found on several devices: cuda:0: layers 0-1, cuda:1: layers 2-2"),
            std::string::npos)
      << split;
}

}  // namespace
}  // namespace lancet
