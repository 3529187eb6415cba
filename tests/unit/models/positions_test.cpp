// Frequencies of rotary embeddings beside the formulas of the papers in plain f64.
#include "blocks/attention.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace lancet {
namespace {

std::vector<double> frequencies_of(const RopeConfig& rope) {
  const Tensor all = rope_frequencies(rope, RopePrecision::kF64).usual;
  return {all.data_ptr<double>(), all.data_ptr<double>() + all.numel()};
}

double usual(const RopeConfig& rope, size_t pair) {
  return std::pow(rope.theta, -2.0 * static_cast<double>(pair) / static_cast<double>(rope.dim));
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12 * expected[i]) << "pair " << i;
}

RopeConfig yarn_of_qwen() {
  RopeConfig rope{.dim = 128, .theta = 1e6, .scaling = RopeConfig::Scaling::kYarn, .factor = 4};
  rope.original_max_positions = 32768;
  return rope;
}

TEST(RopeFrequencies, OfDynamicScalingAreTheUsualOnes) {
  const RopeConfig rope{.dim = 16, .scaling = RopeConfig::Scaling::kDynamic, .factor = 4};
  expect_near(frequencies_of(rope), frequencies_of({.dim = 16}));
}

/// Turns within the original length decide, in the paper's gamma: here by how far a pair lies between two.
TEST(RopeFrequencies, OfYarnPassFromKeptToDivided) {
  RopeConfig rope = yarn_of_qwen();
  rope.passes_at_whole_pairs = false;
  const std::vector<double> found = frequencies_of(rope);
  std::vector<double> expected;
  for (size_t i = 0; i < 64; ++i) {
    const double turns = 32768 * usual(rope, i) / (2 * M_PI);
    const double divided = std::clamp(std::log(32 / turns) / std::log(32.0), 0.0, 1.0);  // linear in the pair's number
    expected.push_back(usual(rope, i) * (1 - divided) + usual(rope, i) / 4 * divided);
  }
  expect_near(found, expected);
  EXPECT_GT(std::ranges::count_if(found, [&, i = size_t{0}](double f) mutable { return f < usual(rope, i++); }), 24);
}

/// The passage of Qwen's goes from pair 23 to pair 40.
TEST(RopeFrequencies, OfYarnPassAtWholePairs) {
  const RopeConfig rope = yarn_of_qwen();
  std::vector<double> expected;
  for (size_t i = 0; i < 64; ++i) {
    const double divided = std::clamp((static_cast<double>(i) - 23) / 17, 0.0, 1.0);
    expected.push_back(usual(rope, i) * (1 - divided) + usual(rope, i) / 4 * divided);
  }
  expect_near(frequencies_of(rope), expected);
}

struct YarnCase {
  const char* what;
  double theta;
  int64_t original;
  double fast_turns;
  std::vector<double> expected;
};

TEST(RopeFrequencies, OfYarnAreTransformersAtTheEdgesOfAHead) {
  const YarnCase cases[] = {
      {"a passage over pairs 0 to 3", 1e4, 1024, 32, {1, 0.075, 0.005, 0.00025}},
      {"no passage: pair 0.4 for both", 1e4, 16, 1, {1, 0.025, 0.0025, 0.00025}},
      {"all pairs are fast", 1e4, 1'000'000'000, 32, {1, 0.1, 0.01, 0.001}},
      // the passage would begin at pair 8 and is cut off at 7: transformers divides all
      {"the passage lies behind the head",
       1e3,
       1'000'000'000,
       32,
       {0.25, 0.25 * std::pow(1e3, -0.25), 0.25 * std::pow(1e3, -0.5), 0.25 * std::pow(1e3, -0.75)}},
  };
  for (const YarnCase& one : cases) {
    SCOPED_TRACE(one.what);
    RopeConfig rope{.dim = 8, .theta = one.theta, .scaling = RopeConfig::Scaling::kYarn, .factor = 4};
    rope.original_max_positions = one.original;
    rope.fast_turns = one.fast_turns;
    rope.passes_at_whole_pairs = one.fast_turns > 1;
    expect_near(frequencies_of(rope), one.expected);
  }
}

}  // namespace
}  // namespace lancet
