// What a GPU would do in any order is refused on fake devices, and what lancet computes there does without it.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "fake_tensors.h"
#include "lancet/models/generate.h"
#include "lancet/training/text_training.h"
#include "support/edit_setup.h"
#include "support/fake_device.h"
#include "support/tiny_model.h"

namespace lancet::testing {
namespace {

Tensor places(const std::vector<int64_t>& at) { return torch::tensor(at, torch::kLong).to(fake(0)); }

TEST(SumOrder, WhatHasNoneIsRefused) {
  const Tensor x = numbers({3, 4}).to(fake(0)), y = torch::zeros({3, 4}).to(fake(0));
  const auto ones_on = [](const std::vector<int64_t>& at) { return places(at).unsqueeze(1).expand({-1, 4}); };
  EXPECT_NE(refusal([&] { x.cumsum(1); }).find("aten::cumsum"), std::string::npos);
  EXPECT_NE(refusal([&] { x.to(torch::kDouble).cumsum(0); }).find("expected slots of their own"), std::string::npos);
  EXPECT_NE(refusal([&] { y.index_add(0, places({1, 1, 1}), x); }).find("aten::index_add"), std::string::npos);
  EXPECT_NE(refusal([&] { x.index_add(0, places({1, 2, 1}), x); }), "") << "two are added to what was there";
  EXPECT_NE(refusal([&] { y.clone().index_add_(1, places({0, 0, 0, 2}), x); }), "");
  EXPECT_NE(refusal([&] { y.scatter_add(0, ones_on({2, 2, 2}), x); }).find("aten::scatter_add"), std::string::npos);
  EXPECT_NE(refusal([&] { y.index_copy(0, places({0, 1, 1}), x); }).find("aten::index_copy"), std::string::npos);
  EXPECT_NE(refusal([&] { y.scatter(0, ones_on({0, 2, 2}), x); }).find("aten::scatter"), std::string::npos);
  EXPECT_NE(refusal([&] { torch::bincount(places({1, 1, 2}), numbers({3}).to(fake(0))); }), "");
}

/// The backward pass of what is read several times adds.
TEST(SumOrder, GradientsThatMeetAreRefused) {
  const auto gradient = [](const std::vector<int64_t>& read) {
    const Tensor leaf = numbers({3, 4}).to(fake(0)).requires_grad_(true);
    const Tensor weight = numbers({static_cast<int64_t>(read.size()), 4}, 2).to(fake(0));
    (leaf.index_select(0, places(read)) * weight).sum().backward();
  };
  EXPECT_NE(refusal([&] { gradient({1, 1, 0, 1}); }).find("aten::index_add"), std::string::npos);
  EXPECT_EQ(refusal([&] { gradient({1, 1, 0}); }), "");
}

TEST(SumOrder, WhatHasOneIsLetPass) {
  const Tensor x = numbers({3, 4}).to(fake(0)), y = torch::zeros({3, 4}).to(fake(0));
  EXPECT_EQ(refusal([&] { y.index_add(0, places({1, 2, 1}), x); }), "") << "two make one sum in either order";
  EXPECT_EQ(refusal([&] { y.index_add(0, places({1, 1, 1}), torch::full_like(x, 0.1)); }), "") << "equal ones too";
  EXPECT_EQ(refusal([&] { x.index_add(0, places({2, 0, 1}), x); }), "");
  EXPECT_EQ(refusal([&] { y.index_copy(0, places({0, 2, 1}), x); }), "");
  EXPECT_EQ(refusal([&] { places({1, 2, 3}).cumsum(0); }), "") << "whole numbers add up exactly";
  EXPECT_EQ(refusal([&] { torch::bincount(places({1, 1, 2})); }), "");
}

TEST(SumOrder, ADeviceDrawsTheHostsTokens) {
  const std::vector<int64_t> rows{3, 8, 5};
  for (const SamplingOptions& options :
       {SamplingOptions{.top_k = 0, .seed = 5}, SamplingOptions{.temperature = 2, .top_k = 0, .top_p = 0.9, .seed = 5},
        SamplingOptions{.top_k = 20, .seed = 5}}) {
    Sampler on_host(options, rows), there(options, rows);
    for (uint64_t step = 0; step < 50; ++step) {
      const Tensor logits_BV = 2 * numbers({3, 5000}, step);
      EXPECT_EQ(there.next(logits_BV.to(fake(0))), on_host.next(logits_BV));
    }
  }
}

/// Targets of several tokens, one of which comes twice, predicted by a position each or by one.
TEST(SumOrder, TrainingNeedsNone) {
  const TinyModel tiny;
  std::vector<EditRequest> edits = some_requests(3);
  edits[0].target = "Paris and Rome and Paris";
  edits[1].target = "the city of London";
  const std::vector<TokenizedRequest> requests = tokenize_requests(*tiny.tokenizer, edits);
  ASSERT_GE(requests[0].target.size(), 4U);
  const std::vector<WeightId> weights{{WeightKind::kUp, 1}, {WeightKind::kDown, 2}};
  const CausalLM model = tiny.load(at::kDouble, fake_devices(1)), expected = tiny.load();
  for (const TrainingObjective objective : {TrainingObjective::kTarget, TrainingObjective::kPromptLast}) {
    const TrainingOptions options{.objective = objective, .steps = 3, .lr = 1e-3};
    const TrainedWeights found = train_weights(model, requests, weights, options, alone());
    const TrainedWeights of_host = train_weights(expected, requests, weights, options, alone());
    for (size_t i = 0; i < weights.size(); ++i)
      EXPECT_LE(nmse(found.deltas_OI[i].to(kHost), of_host.deltas_OI[i]), 1e-20);
  }
}

}  // namespace
}  // namespace lancet::testing
