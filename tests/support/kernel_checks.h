// Operations in each type against formulas of torch's operations in f64, results and gradients.
#pragma once

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <functional>
#include <initializer_list>
#include <vector>

#include "support/tiny_model.h"

namespace lancet::testing {

using TensorFunction = std::function<Tensor(const std::vector<Tensor>&)>;

/// Largest NMSE against the f64 result.
struct TypeLimit {
  at::ScalarType type;
  double limit;
};
inline constexpr TypeLimit kHostTypes[] = {{at::kDouble, 1e-28}, {at::kFloat, 1e-12}, {at::kBFloat16, 1e-4}};
inline constexpr TypeLimit kKernelTypes[] = {
    {at::kDouble, 1e-28}, {at::kFloat, 1e-12}, {at::kBFloat16, 1e-4}, {at::kHalf, 2e-6}};

/// Result and the gradients of all inputs under one random gradient.
inline std::vector<Tensor> result_and_gradients(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.detach().clone().requires_grad_(true));
  const Tensor y = f(leaves);
  torch::manual_seed(5);
  const Tensor direction = torch::randn(y.sizes(), torch::kDouble).to(y.scalar_type());
  std::vector<Tensor> all = torch::autograd::grad({y}, leaves, {direction});
  all.insert(all.begin(), y.detach());
  return all;
}

/// `ours` in each type against `reference` in f64 on the same (rounded) inputs. Results may be of a wider type.
inline void expect_formula(const TensorFunction& ours, const TensorFunction& reference,
                           const std::vector<Tensor>& inputs, std::span<const TypeLimit> types = kHostTypes) {
  for (const TypeLimit& precision : types) {
    std::vector<Tensor> typed, exact;
    for (const Tensor& input : inputs) {
      typed.push_back(input.to(precision.type));
      exact.push_back(typed.back().to(at::kDouble));
    }
    const std::vector<Tensor> got = result_and_gradients(ours, typed),
                              expected = result_and_gradients(reference, exact);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(i == 0 || got[i].scalar_type() == precision.type);
      EXPECT_LE(nmse(got[i], expected[i]), precision.limit) << at::toString(precision.type) << ", result " << i;
    }
  }
}

inline Tensor random_numbers(at::IntArrayRef shape, int64_t seed) {
  torch::manual_seed(static_cast<uint64_t>(seed));
  return torch::randn(shape, torch::kDouble);
}

}  // namespace lancet::testing
