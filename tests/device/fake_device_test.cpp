// The test bed itself: what the tests on fake devices rely on.
#include "support/fake_device.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace lancet::testing {
namespace {

using at::Tensor;

const at::Device kHost(at::kCPU);

at::Device fake(int index) { return {at::kPrivateUse1, static_cast<at::DeviceIndex>(index)}; }

/// The same numbers for the same shape and seed.
Tensor numbers(at::IntArrayRef shape, uint64_t seed = 1, at::ScalarType dtype = at::kFloat) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return torch::randn(shape, generator, torch::dtype(dtype));
}

Tensor positive_definite(int64_t n) {
  const Tensor a = numbers({n, n}, 7, at::kDouble);
  return a.matmul(a.t()) + static_cast<double>(n) * torch::eye(n, at::kDouble);
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
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

TEST(FakeDevice, GoesThereAndBack) {
  const Tensor x = numbers({4, 5});
  const Tensor there = x.to(fake(1));
  EXPECT_EQ(there.device(), fake(1));
  EXPECT_EQ(there.device().str(), "fake:1");
  EXPECT_TRUE(torch::equal(there.to(fake(0)).to(kHost), x));
  EXPECT_EQ(there.sum().item<float>(), x.sum().item<float>());
}

TEST(FakeDevice, MakesTensorsOnTheDeviceThatIsNamed) {
  const auto on = torch::device(fake(3));
  for (const Tensor& tensor :
       {torch::ones({3}, on), torch::zeros({3}, on), torch::empty({3}, on), torch::full({3}, 2.0, on),
        torch::arange(5, on), torch::eye(3, on), torch::randn({3}, on), torch::tensor({1, 2}, on),
        torch::zeros_like(torch::ones({3}, on)), torch::ones({3}, on).new_zeros({2})})
    EXPECT_EQ(tensor.device(), fake(3));
}

TEST(FakeDevice, RefusesADeviceBeyondTheCount) {
  set_fake_device_count(2);
  EXPECT_EQ(torch::ones({3}).to(fake(1)).device(), fake(1));
  EXPECT_NE(refusal([] { torch::ones({3}).to(fake(2)); }).find("fake device 2 of 2"), std::string::npos);
  set_fake_device_count(kMaxFakeDevices);
  EXPECT_EQ(torch::ones({3}).to(fake(2)).device(), fake(2));
  EXPECT_FALSE(refusal([] { set_fake_device_count(kMaxFakeDevices + 1); }).empty());
}

TEST(FakeDevice, RefusesToMixDevicesInCudasWords) {
  const std::string message = refusal([] {
    torch::mm(torch::ones({3, 3}).to(fake(0)), torch::ones({3, 3}).to(fake(1)));
  });
  EXPECT_EQ(
      message.find("Expected all tensors to be on the same device, but found at least two devices, fake:0 and fake:1! "
                   "(when checking argument for argument mat2 in method aten::mm"),
      0U)
      << message;
}

TEST(FakeDevice, RefusesToMixDevicesInEveryOperation) {
  const Tensor zero = torch::ones({3, 3}).to(fake(0));
  const Tensor one = torch::ones({3, 3}).to(fake(1));
  const Tensor ids = torch::zeros({1}, at::kLong);
  const std::vector<std::pair<const char*, std::function<void()>>> mixtures{
      {"add", [&] { zero + one; }},
      {"add cpu",
       [&] {
         zero + torch::ones({3, 3});
       }},
      {"add to cpu",
       [&] {
         torch::ones({3, 3}) + zero;
       }},
      {"add_", [&] { zero.clone().add_(one); }},
      {"linear", [&] { at::linear(zero, one); }},
      {"linear with a bias elsewhere", [&] { at::linear(zero, zero, torch::ones({3}).to(fake(1))); }},
      {"bmm", [&] { torch::bmm(zero.unsqueeze(0), one.unsqueeze(0)); }},
      {"cat",
       [&] {
         torch::cat({zero, one});
       }},
      {"stack",
       [&] {
         torch::stack({zero, one});
       }},
      {"where", [&] { torch::where(zero > 0, zero, one); }},
      {"index on another device", [&] { zero.index({ids.to(fake(1))}); }},
      {"index_select", [&] { zero.index_select(0, ids.to(fake(1))); }},
      {"index_select with a cpu index", [&] { zero.index_select(0, ids); }},
      {"index_copy_", [&] { zero.clone().index_copy_(0, ids.to(fake(0)), one.slice(0, 0, 1)); }},
      {"gather",
       [&] {
         zero.gather(1, torch::zeros({3, 1}, at::kLong));
       }},
      {"embedding with cpu ids", [&] { at::embedding(zero, ids); }},
      {"sdpa",
       [&] {
         at::scaled_dot_product_attention(zero.view({1, 1, 3, 3}), one.view({1, 1, 3, 3}), zero.view({1, 1, 3, 3}));
       }},
      {"solve", [&] { at::linalg_solve_triangular(zero, one, /*upper=*/false); }},
      {"mm out=",
       [&] {
         Tensor out = torch::empty({3, 3}, torch::device(fake(1)));
         at::mm_out(out, zero, zero);
       }},
  };
  for (const auto& [name, act] : mixtures)
    EXPECT_NE(refusal(act).find("Expected all tensors to be on the same device"), std::string::npos)
        << name << ": " << refusal(act);
}

TEST(FakeDevice, MixesWithNumbersFromTheCpu) {
  const Tensor x = numbers({3}).to(fake(1));
  EXPECT_EQ((x * torch::tensor(2.0F)).device(), fake(1));
  EXPECT_EQ((x + 1).device(), fake(1));
  EXPECT_TRUE(torch::equal((x * torch::tensor(2.0F)).to(kHost), x.to(kHost) * 2));
}

TEST(FakeDevice, IndexesWithIndicesFromTheCpu) {
  const Tensor x = numbers({4, 4});
  Tensor y = x.to(fake(1));
  const Tensor ids = torch::tensor({0, 2});
  EXPECT_TRUE(torch::equal(y.index({ids}).to(kHost), x.index({ids})));
  EXPECT_EQ(y.index({ids}).device(), fake(1));
  y.index_put_({ids}, torch::full({4}, 5.0F, torch::device(fake(1))));
  EXPECT_EQ(y[2][3].item<float>(), 5.0F);
}

TEST(FakeDevice, ComputesWhatTheCpuComputes) {
  const auto on = [](at::Device device, at::IntArrayRef shape, uint64_t seed = 1) {
    return numbers(shape, seed).to(device);
  };
  const auto ids = [](at::Device device) { return torch::tensor({2, 0, 1, 2}).to(device); };
  using Results = std::vector<Tensor>;
  expect_same("mm", [&](at::Device d) { return Results{torch::mm(on(d, {3, 4}), on(d, {4, 5}))}; });
  expect_same("matmul", [&](at::Device d) { return Results{torch::matmul(on(d, {2, 3, 4}), on(d, {4, 5}))}; });
  expect_same("linear", [&](at::Device d) { return Results{at::linear(on(d, {2, 3, 4}), on(d, {5, 4}), on(d, {5}))}; });
  expect_same("addmm", [&](at::Device d) {
    return Results{torch::addmm(on(d, {3, 5}), on(d, {3, 4}), on(d, {4, 5}), 1, -2)};
  });
  expect_same("baddbmm", [&](at::Device d) {
    return Results{torch::baddbmm(on(d, {2, 3, 5}), on(d, {2, 3, 4}), on(d, {2, 4, 5}), 1, 0.5)};
  });
  expect_same("einsum", [&](at::Device d) {
    return Results{torch::einsum("ij,kj->ik", {on(d, {3, 4}), on(d, {5, 4})})};
  });
  expect_same("index_select", [&](at::Device d) { return Results{on(d, {3, 4}).index_select(0, ids(d))}; });
  expect_same("index_put_", [&](at::Device d) {
    return Results{on(d, {3, 4}).index_put_({ids(d)}, on(d, {4, 4}), true)};
  });
  expect_same("index_add", [&](at::Device d) { return Results{on(d, {3, 4}).index_add(0, ids(d), on(d, {4, 4}))}; });
  expect_same("index_copy_", [&](at::Device d) {
    return Results{on(d, {3, 4}).index_copy_(1, ids(d).slice(0, 0, 3), on(d, {3, 3}, 2))};
  });
  expect_same("gather", [&](at::Device d) { return Results{on(d, {4, 5}).gather(1, ids(d).unsqueeze(1))}; });
  expect_same("scatter", [&](at::Device d) {
    return Results{on(d, {4, 5}).scatter(1, ids(d).unsqueeze(1), 9.0),
                   on(d, {4, 5}).scatter_add(1, ids(d).unsqueeze(1), on(d, {4, 1}))};
  });
  expect_same("cat and stack", [&](at::Device d) {
    return Results{torch::cat({on(d, {2, 3}), on(d, {4, 3})}), torch::stack({on(d, {2, 3}), on(d, {2, 3}, 2)}, 1)};
  });
  expect_same("topk", [&](at::Device d) {
    const auto [values, indices] = torch::topk(on(d, {3, 9}), 4);
    return Results{values, indices};
  });
  expect_same("argsort, sort, argmax", [&](at::Device d) {
    const Tensor x = on(d, {3, 9});
    return Results{torch::argsort(x, 1, true), std::get<0>(x.sort(1)), x.argmax(-1), x.argmin(0), x.amax(1)};
  });
  expect_same("masks", [&](at::Device d) {
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
  expect_same("softmax", [&](at::Device d) {
    const Tensor x = on(d, {3, 9});
    return Results{torch::log_softmax(x, -1), torch::softmax(x, -1), torch::logsumexp(x, -1), torch::cumsum(x, 1)};
  });
  expect_same("rms norm", [&](at::Device d) {
    const Tensor x = on(d, {2, 3, 8}).to(at::kBFloat16);
    const Tensor wide = x.to(at::kFloat);
    const Tensor normed = wide * torch::rsqrt(wide.pow(2).mean(-1, true) + 1e-6);
    return Results{on(d, {8}).to(at::kBFloat16) * normed.to(at::kBFloat16)};
  });
  expect_same("activations", [&](at::Device d) {
    return Results{at::silu(on(d, {9})), at::gelu(on(d, {9})), on(d, {9}).norm(), on(d, {9}).clamp(-1, 1),
                   on(d, {9}).cos()};
  });
  expect_same("embedding", [&](at::Device d) { return Results{at::embedding(on(d, {3, 4}), ids(d))}; });
  expect_same("repeat", [&](at::Device d) {
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
  using Results = std::vector<Tensor>;
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

TEST(FakeDevice, SharesMemoryBetweenATensorAndItsViews) {
  const Tensor x = torch::arange(24, at::kFloat).view({2, 3, 4}).to(fake(1));
  const Tensor view = x.transpose(1, 2).select(0, 1).slice(0, 1, 3);
  EXPECT_EQ(view.device(), fake(1));
  view.fill_(7);
  EXPECT_EQ(x[1][0][1].item<float>(), 7.0F);
  EXPECT_EQ(x[0][0][1].item<float>(), 1.0F);
  const Tensor same = x.view({6, 4}).unsqueeze(0).squeeze(0).narrow(0, 1, 2);
  EXPECT_EQ(same.data_ptr<float>(), x.data_ptr<float>() + 4);
  EXPECT_TRUE(
      torch::equal(x.permute({2, 0, 1}).reshape({4, 6}).to(kHost), x.to(kHost).permute({2, 0, 1}).reshape({4, 6})));
  EXPECT_EQ(x.unbind(0)[1].data_ptr<float>(), x.data_ptr<float>() + 12);
  EXPECT_EQ(x.flatten(0, 1).unflatten(0, {2, 3}).data_ptr<float>(), x.data_ptr<float>());
  EXPECT_EQ(x.unsqueeze(0).expand({3, 2, 3, 4}).strides()[0], 0);
}

TEST(FakeDevice, WritesInPlace) {
  Tensor x = torch::zeros({4, 4}, torch::device(fake(1)));
  const float* data = x.data_ptr<float>();
  x.narrow(0, 1, 2).copy_(torch::ones({2, 4}));
  x.mul_(3).add_(1).sub_(torch::ones({4}, torch::device(fake(1))));
  x.select(0, 0).index_fill_(0, torch::tensor({1}).to(fake(1)), 9);
  EXPECT_EQ(x.data_ptr<float>(), data);
  EXPECT_EQ(x.sum().item<float>(), 2 * 4 * 3 + 9.0F);
  EXPECT_EQ(x.device(), fake(1));
}

TEST(FakeDevice, WritesWhereOutSays) {
  const Tensor a = numbers({3, 4});
  const Tensor b = numbers({4, 5}, 2);
  Tensor out = torch::empty({3, 5}, torch::device(fake(1)));
  const float* data = out.data_ptr<float>();
  at::mm_out(out, a.to(fake(1)), b.to(fake(1)));
  EXPECT_EQ(out.data_ptr<float>(), data);
  EXPECT_TRUE(torch::equal(out.to(kHost), a.mm(b)));
  Tensor empty = torch::empty({0}, torch::device(fake(1)));
  at::mm_out(empty, a.to(fake(1)), b.to(fake(1)));
  EXPECT_TRUE(torch::equal(empty.to(kHost), a.mm(b)));
  Tensor into_nothing = torch::empty({0}, torch::device(fake(1)));
  at::mm_out(into_nothing, a.slice(0, 0, 0).to(fake(1)), b.to(fake(1)));
  EXPECT_EQ(into_nothing.sizes(), (std::vector<int64_t>{0, 5}));
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

TEST(FakeDevice, CountsLiveAndPeakBytes) {
  const int64_t before = fake_bytes_live(5);
  reset_fake_peaks();
  {
    const Tensor x = torch::empty({1000}, torch::device(fake(5)));
    EXPECT_EQ(fake_bytes_live(5), before + 4000);
    const Tensor view = x.view({10, 100});
    EXPECT_EQ(fake_bytes_live(5), before + 4000);
    {
      const Tensor y = x.to(at::kDouble);
      EXPECT_EQ(fake_bytes_live(5), before + 12000);
    }
    EXPECT_EQ(fake_bytes_live(5), before + 4000);
    EXPECT_EQ(fake_bytes_peak(5), before + 12000);
    EXPECT_EQ(fake_bytes_live(6), fake_bytes_peak(6));
    reset_fake_peaks();
    EXPECT_EQ(fake_bytes_peak(5), before + 4000);
  }
  EXPECT_EQ(fake_bytes_live(5), before);
}

TEST(FakeDevice, CountsBytesWhereTheTensorLies) {
  const int64_t before = fake_bytes_live(6);
  Tensor empty = torch::empty({0}, torch::device(fake(6)));
  const c10::DeviceGuard guard(fake(2));
  at::mm_out(empty, torch::ones({4, 4}).to(fake(6)), torch::ones({4, 4}).to(fake(6)));
  EXPECT_EQ(fake_bytes_live(6), before + 64);
  const Tensor made = torch::ones({2}, torch::device(at::Device(at::kPrivateUse1)));
  EXPECT_EQ(made.device(), fake(2));
}

TEST(FakeDevice, CountsCopiesBetweenDevices) {
  const Tensor x = torch::ones({3});
  reset_fake_copies();
  const Tensor zero = x.to(fake(0));
  EXPECT_EQ(fake_copies_across(), 1);
  const Tensor one = zero.to(fake(1));
  EXPECT_EQ(fake_copies_across(), 2);
  EXPECT_EQ(one.to(kHost).numel(), 3);
  EXPECT_EQ(fake_copies_across(), 3);
  const Tensor same = (one.clone() + one.to(at::kDouble) * 2).contiguous();
  EXPECT_EQ(one.to(fake(1)).numel(), same.numel());
  EXPECT_EQ(fake_copies_across(), 3);
  reset_fake_copies();
  EXPECT_EQ(fake_copies_across(), 0);
}

}  // namespace
}  // namespace lancet::testing
