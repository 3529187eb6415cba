// The test bed itself: fake devices compute, and differentiate, what the CPU does.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fake_tensors.h"
#include "support/fake_device.h"

namespace lancet::testing {
namespace {

Tensor positive_definite(int64_t n) {
  const Tensor a = numbers({n, n}, 7, at::kDouble);
  return a.matmul(a.t()) + static_cast<double>(n) * torch::eye(n, at::kDouble);
}

/// `compute` gives bit by bit the same on the CPU and on a fake device, and its results lie there.
void expect_same(const std::string& name, const std::function<std::vector<Tensor>(at::Device)>& compute) {
  const std::vector<Tensor> expected = compute(kHost);
  std::vector<Tensor> results;
  try {
    results = compute(fake(1));
  } catch (const std::exception& error) {
    ADD_FAILURE() << name << ": " << error.what();
    return;
  }
  ASSERT_EQ(results.size(), expected.size()) << name;
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].device(), fake(1)) << name << ", result " << i;
    EXPECT_EQ(results[i].strides(), expected[i].strides()) << name << ", result " << i;
    EXPECT_TRUE(torch::equal(results[i].to(kHost), expected[i])) << name << ", result " << i;
  }
}

/// Random numbers and row indices on a device.
Tensor on(at::Device device, at::IntArrayRef shape, uint64_t seed = 1) { return numbers(shape, seed).to(device); }
Tensor ids(at::Device device) { return torch::tensor({2, 0, 1, 2}).to(device); }

using Results = std::vector<Tensor>;

TEST(FakeDevice, MultipliesAndIndexesAsTheCpuDoes) {
  expect_same("mm", [](at::Device d) { return Results{torch::mm(on(d, {3, 4}), on(d, {4, 5}))}; });
  expect_same("matmul", [](at::Device d) { return Results{torch::matmul(on(d, {2, 3, 4}), on(d, {4, 5}))}; });
  expect_same("linear", [](at::Device d) { return Results{at::linear(on(d, {2, 3, 4}), on(d, {5, 4}), on(d, {5}))}; });
  expect_same("addmm", [](at::Device d) {
    return Results{torch::addmm(on(d, {3, 5}), on(d, {3, 4}), on(d, {4, 5}), 1, -2)};
  });
  expect_same("baddbmm", [](at::Device d) {
    return Results{torch::baddbmm(on(d, {2, 3, 5}), on(d, {2, 3, 4}), on(d, {2, 4, 5}), 1, 0.5)};
  });
  expect_same("einsum", [](at::Device d) {
    return Results{torch::einsum("ij,kj->ik", {on(d, {3, 4}), on(d, {5, 4})})};
  });
  expect_same("index_select", [](at::Device d) { return Results{on(d, {3, 4}).index_select(0, ids(d))}; });
  expect_same("index_put_", [](at::Device d) {
    return Results{on(d, {3, 4}).index_put_({ids(d)}, on(d, {4, 4}), true)};
  });
  expect_same("index_add", [](at::Device d) {
    return Results{torch::zeros({3, 4}, d).index_add(0, ids(d), on(d, {4, 4}))};
  });
  expect_same("index_copy_", [](at::Device d) {
    return Results{on(d, {3, 4}).index_copy_(1, ids(d).slice(0, 0, 3), on(d, {3, 3}, 2))};
  });
  expect_same("gather", [](at::Device d) { return Results{on(d, {4, 5}).gather(1, ids(d).unsqueeze(1))}; });
  expect_same("scatter", [](at::Device d) {
    return Results{on(d, {4, 5}).scatter(1, ids(d).unsqueeze(1), 9.0),
                   on(d, {4, 5}).scatter_add(1, ids(d).unsqueeze(1), on(d, {4, 1}))};
  });
  expect_same("cat and stack", [](at::Device d) {
    return Results{torch::cat({on(d, {2, 3}), on(d, {4, 3})}), torch::stack({on(d, {2, 3}), on(d, {2, 3}, 2)}, 1)};
  });
}

TEST(FakeDevice, SortsMasksAndNormsAsTheCpuDoes) {
  expect_same("topk", [](at::Device d) {
    const auto [values, indices] = torch::topk(on(d, {3, 9}), 4);
    return Results{values, indices};
  });
  expect_same("argsort, sort, argmax", [](at::Device d) {
    const Tensor x = on(d, {3, 9});
    return Results{torch::argsort(x, 1, true), std::get<0>(x.sort(1)), x.argmax(-1), x.argmin(0), x.amax(1)};
  });
  expect_same("masks", [](at::Device d) {
    const Tensor x = on(d, {5, 5});
    return Results{x.masked_fill(x > 0, -1e9),
                   torch::where(x > 0, x, torch::zeros_like(x)),
                   x.tril(),
                   x.triu(1),
                   x.masked_select(x > 0),
                   torch::nonzero(x > 0),
                   (x > 0).any(),
                   (x.isfinite()).all()};
  });
  expect_same("softmax", [](at::Device d) {
    const Tensor x = on(d, {3, 9});
    return Results{torch::log_softmax(x, -1), torch::softmax(x, -1), torch::logsumexp(x, -1), torch::cumsum(ids(d), 0)};
  });
  expect_same("rms norm", [](at::Device d) {
    const Tensor x = on(d, {2, 3, 8}).to(at::kBFloat16);
    const Tensor wide = x.to(at::kFloat);
    const Tensor normed = wide * torch::rsqrt(wide.pow(2).mean(-1, true) + 1e-6);
    return Results{on(d, {8}).to(at::kBFloat16) * normed.to(at::kBFloat16)};
  });
  expect_same("activations", [](at::Device d) {
    return Results{at::silu(on(d, {9})), at::gelu(on(d, {9})), on(d, {9}).norm(), on(d, {9}).clamp(-1, 1),
                   on(d, {9}).cos()};
  });
  expect_same("embedding", [](at::Device d) { return Results{at::embedding(on(d, {3, 4}), ids(d))}; });
  expect_same("repeat", [](at::Device d) {
    return Results{on(d, {2, 3}).repeat_interleave(2, 0), on(d, {2, 3}).repeat({2, 2}), on(d, {2, 3}).flip({0})};
  });
}

TEST(FakeDevice, ConvertsBetweenTypes) {
  const Tensor x = numbers({5, 7}).to(at::kBFloat16);
  const Tensor there = x.to(fake(1)).to(at::kFloat);
  EXPECT_EQ(there.device(), fake(1));
  EXPECT_EQ(there.scalar_type(), at::kFloat);
  EXPECT_TRUE(torch::equal(there.to(kHost), x.to(at::kFloat)));
  const Tensor both = x.to(fake(0)).to(fake(1), at::kDouble);
  EXPECT_EQ(both.device(), fake(1));
  EXPECT_TRUE(torch::equal(both.to(kHost), x.to(at::kDouble)));
}

TEST(FakeDevice, DoesAlgebraInDoubles) {
  const auto matrix = [](at::Device d) { return positive_definite(6).to(d); };
  const auto right = [](at::Device d) { return numbers({6, 2}, 3, at::kDouble).to(d); };
  expect_same("cholesky", [&](at::Device d) { return Results{at::linalg_cholesky(matrix(d))}; });
  expect_same("cholesky_ex", [&](at::Device d) {
    const auto [factor, info] = at::linalg_cholesky_ex(matrix(d));
    const auto [ignored, failed] = at::linalg_cholesky_ex(-matrix(d));
    return Results{factor, info, failed};
  });
  expect_same("solve_triangular", [&](at::Device d) {
    const Tensor factor = at::linalg_cholesky(matrix(d));
    return Results{at::linalg_solve_triangular(factor, right(d), false),
                   at::linalg_solve_triangular(factor.t(), right(d), true)};
  });
  expect_same("cholesky_solve",
              [&](at::Device d) { return Results{torch::cholesky_solve(right(d), at::linalg_cholesky(matrix(d)))}; });
  expect_same("eigh", [&](at::Device d) {
    const auto [values, vectors] = at::linalg_eigh(matrix(d));
    return Results{values, vectors, at::linalg_eigvalsh(matrix(d))};
  });
  expect_same("solve and inverse", [&](at::Device d) {
    return Results{at::linalg_solve(matrix(d), right(d)), at::linalg_inv(matrix(d))};
  });
  expect_same("svd and qr", [&](at::Device d) {
    const auto [u, s, v] = at::linalg_svd(right(d), false);
    const auto [q, r] = at::linalg_qr(right(d));
    return Results{u, s, v, q, r};
  });
}

TEST(FakeDevice, AttendsAsTheCpuDoes) {
  const auto attend = [](at::Device device) {
    const Tensor query = numbers({2, 4, 5, 8}, 1).to(device);
    const Tensor key = numbers({2, 4, 6, 8}, 2).to(device);
    const Tensor mask = (numbers({2, 1, 5, 6}, 3) > -1).to(device);
    return std::vector<Tensor>{at::scaled_dot_product_attention(query, key, key),
                               at::scaled_dot_product_attention(query, key, key, mask),
                               at::scaled_dot_product_attention(query, query, query, {}, 0.0, /*is_causal=*/true)};
  };
  // Backends differ in the order of their sums, so equal only to rounding.
  const std::vector<Tensor> expected = attend(kHost);
  const std::vector<Tensor> results = attend(fake(1));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(results[i].device(), fake(1));
    EXPECT_TRUE(torch::allclose(results[i].to(kHost), expected[i], 1e-5, 1e-6)) << "case " << i;
  }
}

/// Gradients of a small network whose second half lies on another device.
std::vector<Tensor> gradients(at::Device first, at::Device second) {
  const Tensor in = numbers({8, 6}, 1).to(first).requires_grad_(true);
  const Tensor out = numbers({6, 8}, 2).to(second).requires_grad_(true);
  const Tensor x = numbers({4, 6}, 3).to(first);
  const Tensor hidden = at::silu(at::linear(x, in)) * torch::rsqrt(x.pow(2).mean(-1, true) + 1e-6);
  const Tensor log_probabilities = torch::log_softmax(at::linear(hidden.to(second), out), -1);
  const Tensor loss = -log_probabilities.gather(1, torch::tensor({0, 5, 2, 2}).to(second).unsqueeze(1)).mean();
  std::vector<Tensor> results = torch::autograd::grad({loss + in.norm().to(second)}, {in, out});
  EXPECT_EQ(results[0].device(), first);
  EXPECT_EQ(results[1].device(), second);
  for (Tensor& gradient : results) gradient = gradient.to(kHost);
  return results;
}

TEST(FakeDevice, DifferentiatesAcrossDevicesAsTheCpuDoes) {
  const std::vector<Tensor> expected = gradients(kHost, kHost);
  for (const auto& [first, second] :
       {std::pair{fake(1), fake(1)}, {fake(0), fake(3)}, {fake(3), fake(0)}, {kHost, fake(1)}, {fake(1), kHost}}) {
    const std::vector<Tensor> results = gradients(first, second);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(torch::allclose(results[i], expected[i], 1e-6, 1e-7)) << first << " " << second << " gradient " << i;
  }
}

TEST(FakeDevice, DifferentiatesAlgebraAndAttention) {
  const auto gradient = [](at::Device device) {
    const Tensor x = numbers({1, 2, 4, 4}, 5, at::kDouble).to(device).requires_grad_(true);
    const Tensor attended = at::scaled_dot_product_attention(x, x, x, {}, 0.0, /*is_causal=*/true);
    const Tensor matrix = attended.matmul(attended.transpose(-1, -2)) + torch::eye(4, x.options());
    attended.retain_grad();
    at::linalg_cholesky(matrix).diagonal(0, -2, -1).log().sum().backward();
    EXPECT_EQ(x.grad().device(), device);
    EXPECT_TRUE(attended.grad().defined());
    return x.grad().to(kHost);
  };
  EXPECT_TRUE(torch::allclose(gradient(fake(2)), gradient(kHost), 1e-10, 1e-12));
}

TEST(FakeDevice, RunsOneBackwardOverLossesOnSeveralDevices) {
  std::vector<Tensor> leaves;
  std::vector<Tensor> losses;
  for (int i = 0; i < kMaxFakeDevices; ++i) {
    leaves.push_back(numbers({5}, static_cast<uint64_t>(i)).to(fake(i)).requires_grad_(true));
    losses.push_back(leaves.back().pow(2).sum());
  }
  const std::vector<Tensor> results = torch::autograd::grad(losses, leaves);
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].device(), leaves[i].device());
    EXPECT_TRUE(torch::equal(results[i].to(kHost), 2 * leaves[i].detach().to(kHost)));
  }
}

}  // namespace
}  // namespace lancet::testing
