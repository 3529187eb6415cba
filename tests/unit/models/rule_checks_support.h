// What holds of every rule that carries a state from token to token (mixers/chunks.h): chunks against the recurrence,
// rows in parts, and gradients.
#pragma once

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <functional>
#include <vector>

#include "mixers/chunks.h"
#include "support/tiny_model.h"

namespace lancet::testing {

/// A rule as a function of its inputs: those by token [R, H, T, ...], then the state before.
struct CheckedRule {
  std::function<std::vector<Tensor>(int64_t n, uint64_t seed)> random;
  std::function<RuleResult(const std::vector<Tensor>& inputs, const Tensor& state_RHKV)> by_tokens;
  std::function<RuleResult(const std::vector<Tensor>& inputs, const Tensor& state_RHKV, int64_t chunk)> by_chunks;
};

/// A number that every output and every number of the state behind counts in, each otherwise.
inline Tensor weighed(const RuleResult& result) {
  const auto weigh = [](const Tensor& x) {
    return (x * torch::arange(x.numel(), torch::kDouble).view_as(x).add(1).sin()).sum();
  };
  return weigh(result.out_RHTV) + weigh(result.state_RHKV);
}

/// Compares with and without a state before, and for chunks of several lengths.
inline void expect_chunks_equal_the_recurrence(const CheckedRule& rule) {
  const std::vector<Tensor> x = rule.random(11, 1);
  for (const Tensor& state : {x.back(), Tensor()}) {
    const RuleResult expected = rule.by_tokens(x, state);
    for (const int64_t chunk : {2, 4, 11, 64}) {
      const RuleResult result = rule.by_chunks(x, state, chunk);
      EXPECT_LE(nmse(result.out_RHTV, expected.out_RHTV), kExactF64) << chunk;
      EXPECT_LE(nmse(result.state_RHKV, expected.state_RHKV), kExactF64) << chunk;
    }
  }
}

inline void expect_a_row_in_two_parts_equals_it_whole(const CheckedRule& rule) {
  const std::vector<Tensor> x = rule.random(9, 2);
  const RuleResult whole = rule.by_chunks(x, {}, kMixerChunk);
  std::vector<Tensor> first, second;
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    first.push_back(x[i].narrow(2, 0, 4));
    second.push_back(x[i].narrow(2, 4, 5));
  }
  const RuleResult before = rule.by_chunks(first, {}, kMixerChunk);
  const RuleResult after = rule.by_chunks(second, before.state_RHKV, kMixerChunk);
  EXPECT_LE(nmse(torch::cat({before.out_RHTV, after.out_RHTV}, 2), whole.out_RHTV), kExactF64);
  EXPECT_LE(nmse(after.state_RHKV, whole.state_RHKV), kExactF64);
}

/// Those of chunks are the recurrence's, and those of finite differences.
inline void expect_right_gradients(const CheckedRule& rule) {
  constexpr int64_t kChunk = 3;
  std::vector<Tensor> x = rule.random(7, 3);
  for (Tensor& each : x) each.requires_grad_();
  const std::vector<Tensor> exact = torch::autograd::grad({weighed(rule.by_tokens(x, x.back()))}, x);
  const std::vector<Tensor> chunked = torch::autograd::grad({weighed(rule.by_chunks(x, x.back(), kChunk))}, x);
  constexpr double kStep = 1e-6;
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(nmse(chunked[i], exact[i]), 1e-22) << i;
    const torch::NoGradGuard no_grad;
    const Tensor direction = x[i].cos();
    const auto moved = [&](double step) {
      std::vector<Tensor> there = x;
      there[i] = x[i] + step * direction;
      return weighed(rule.by_chunks(there, there.back(), kChunk)).item<double>();
    };
    const double slope = (moved(kStep) - moved(-kStep)) / (2 * kStep);
    EXPECT_NEAR((chunked[i] * direction).sum().item<double>(), slope, 1e-6 * std::abs(slope) + 1e-7) << i;
  }
}

}  // namespace lancet::testing
