// The loops of the host against chains of torch's operations, results and gradients, in every type they have.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <cmath>
#include <functional>

#include "lancet/kernels/attention.h"
#include "lancet/kernels/decoder_ops.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using Tensors = std::vector<Tensor>;

/// Largest NMSE against the f64 result of torch's operations.
struct Precision {
  at::ScalarType type;
  double limit;
};
const Precision kPrecisions[] = {{at::kDouble, 1e-28}, {at::kFloat, 1e-12}, {at::kBFloat16, 1e-4}};

/// Result and the gradients of all inputs under one random gradient.
Tensors with_gradients(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs) {
  Tensors leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.detach().clone().requires_grad_(true));
  const Tensor y = f(leaves);
  torch::manual_seed(5);
  const Tensor direction = torch::randn(y.sizes(), torch::kDouble).to(y.scalar_type());
  Tensors all = torch::autograd::grad({y}, leaves, {direction});
  all.insert(all.begin(), y.detach());
  return all;
}

/// `ours` in each type against `reference` in f64 on the same (rounded) inputs.
void expect_equal(const std::function<Tensor(const Tensors&)>& ours,
                  const std::function<Tensor(const Tensors&)>& reference, const Tensors& inputs) {
  for (const Precision& precision : kPrecisions) {
    Tensors typed, exact;
    for (const Tensor& input : inputs) {
      typed.push_back(input.to(precision.type));
      exact.push_back(typed.back().to(at::kDouble));
    }
    const Tensors got = with_gradients(ours, typed), expected = with_gradients(reference, exact);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].scalar_type(), precision.type);
      EXPECT_LE(nmse(got[i], expected[i]), precision.limit) << at::toString(precision.type) << ", result " << i;
    }
  }
}

Tensor random(at::IntArrayRef shape, int64_t seed) {
  torch::manual_seed(static_cast<uint64_t>(seed));
  return torch::randn(shape, torch::kDouble);
}

TEST(DecoderOps, RmsNormIsTheFormula) {
  const double eps = 1e-5;
  const Tensor weight = random({48}, 2);
  const auto formula = [&](const Tensors& in) {
    const Tensor w = weight.to(at::kBFloat16).to(at::kDouble);
    return w * in[0] * torch::rsqrt(in[0].square().mean(-1, true) + eps);
  };
  const auto ours = [&](const Tensors& in) {
    return rms_norm(in[0], weight.to(at::kBFloat16).to(in[0].scalar_type()), eps);
  };
  expect_equal(ours, formula, {random({3, 700, 48}, 1)});  // more rows than one thread takes
}

TEST(DecoderOps, RmsNormGivesAGradientToAWeightThatWantsOne) {
  const auto formula = [](const Tensors& in) {
    return in[1] * in[0] * torch::rsqrt(in[0].square().mean(-1, true) + 1e-5);
  };
  const auto ours = [](const Tensors& in) { return rms_norm(in[0], in[1], 1e-5); };
  expect_equal(ours, formula, {random({3, 5, 48}, 1), random({48}, 2)});
}

TEST(DecoderOps, SiluTimesIsTheFormula) {
  const auto formula = [](const Tensors& in) { return in[0] * torch::sigmoid(in[0]) * in[1]; };
  const auto ours = [](const Tensors& in) { return silu_times(in[0], in[1]); };
  expect_equal(ours, formula, {8 * random({5, 7, 1001}, 3), random({5, 7, 1001}, 4)});
}

TEST(DecoderOps, SiluTimesBearsInfinitiesOfTheExponential) {
  const Tensor gate = torch::tensor({-1e4F, -100.0F, 0.0F, 100.0F, 1e4F});
  const Tensor y = silu_times(gate, torch::ones(5));
  EXPECT_TRUE(torch::equal(y, torch::tensor({-0.0F, y[1].item<float>(), 0.0F, 100.0F, 1e4F})));
  EXPECT_NEAR(y[1].item<float>(), 0.0F, 1e-30);
}

TEST(DecoderOps, RotatePairsIsAComplexProduct) {
  const Tensor angle = random({2, 9, 1, 5}, 6);
  const Tensor both = torch::cat({angle, angle}, 3);
  const auto formula = [&](const Tensors& in) {
    const auto halves = in[0].chunk(2, -1);
    const Tensor turned = torch::complex(halves[0], halves[1]) * torch::polar(torch::ones_like(angle), angle);
    return torch::cat({torch::real(turned), torch::imag(turned)}, -1);
  };
  const auto ours = [&](const Tensors& in) {
    return rotate_pairs(in[0], both.cos().to(in[0].scalar_type()), both.sin().to(in[0].scalar_type()));
  };
  expect_equal(ours, formula, {random({2, 9, 3, 10}, 7)});
}

/// Softmax attention written out, one key/value head per query head.
Tensor plain_attention(const Tensor& query_BQHC, const Tensor& key_BSKC, const Tensor& value_BSKC, const Tensor& mask) {
  const int64_t group = query_BQHC.size(2) / key_BSKC.size(2);
  const Tensor keys = key_BSKC.repeat_interleave(group, 2), values = value_BSKC.repeat_interleave(group, 2);
  const Tensor scores =
      torch::einsum("bqhc,bshc->bhqs", {query_BQHC, keys}) / std::sqrt(static_cast<double>(query_BQHC.size(3)));
  const Tensor weights = torch::softmax(scores.masked_fill(mask.logical_not(), -INFINITY), -1);
  return torch::einsum("bhqs,bshc->bqhc", {weights, values}).flatten(2);
}

void expect_attention(int64_t dim, int64_t n_prefix, int64_t n_queries) {
  const int64_t n_rows = 3, n_fresh = 6, heads = 4, kv_heads = 2;
  const KeyValuePair prefix{random({n_rows, kv_heads, n_prefix, dim}, 11),
                            random({n_rows, kv_heads, n_prefix, dim}, 12)};
  // as stored: bf16 and f32 see the same prefix
  const auto rounded = [](const Tensor& x) { return x.to(at::kBFloat16).to(at::kDouble); };
  Tensor mask = random({n_rows, 1, n_queries, n_prefix + n_fresh}, 13) > 0;
  mask.select(3, n_prefix).fill_(true);  // every query sees something
  const auto formula = [&](const Tensors& in) {
    return plain_attention(in[0], torch::cat({rounded(prefix.key).transpose(1, 2), in[1]}, 1),
                           torch::cat({rounded(prefix.value).transpose(1, 2), in[2]}, 1), mask);
  };
  const auto ours = [&](const Tensors& in) {
    const auto typed = [&](const Tensor& x) { return rounded(x).to(in[0].scalar_type()); };
    const KeyValuePair before = n_prefix > 0 ? KeyValuePair{typed(prefix.key), typed(prefix.value)} : KeyValuePair{};
    return grouped_attention(in[0], {in[1], in[2]}, before, mask, usual_rule(dim));
  };
  expect_equal(ours, formula,
               {random({n_rows, n_queries, heads, dim}, 14), random({n_rows, n_fresh, kv_heads, dim}, 15),
                random({n_rows, n_fresh, kv_heads, dim}, 16)});
}

TEST(GroupedAttention, OfFewQueriesIsTheFormula) {
  for (const int64_t dim : {6, 32, 64, 128}) expect_attention(dim, 5, 4);
}

TEST(GroupedAttention, WithoutPrefixIsTheFormula) { expect_attention(32, 0, 6); }

/// All keys in a memory that is longer than what is in use: the same as their copy.
TEST(GroupedAttention, ReadsAPartOfALongerMemory) {
  const int64_t n_rows = 3, room = 9, used = 7, heads = 4, kv_heads = 2, dim = 32;
  for (const Precision& precision : kPrecisions) {
    const auto typed = [&](const Tensor& x) { return x.to(precision.type); };
    const Tensor keys = typed(random({n_rows + 1, kv_heads, room, dim}, 21)).narrow(0, 0, n_rows).narrow(2, 0, used);
    const Tensor values = typed(random({n_rows + 1, kv_heads, room, dim}, 22)).narrow(0, 0, n_rows).narrow(2, 0, used);
    for (const int64_t n_queries : {1, 40}) {
      const Tensor query = typed(random({n_rows, n_queries, heads, dim}, 23));
      const Tensor none = typed(random({n_rows, 0, kv_heads, dim}, 24));
      Tensor mask = random({n_rows, 1, n_queries, used}, 25) > 0;
      mask.select(3, 0).fill_(true);
      const Tensor in_place = grouped_attention(query, {none, none}, {keys, values}, mask, usual_rule(dim));
      const Tensor joined = grouped_attention(
          query, {keys.slice(2, 4).transpose(1, 2), values.slice(2, 4).transpose(1, 2)},
          {keys.slice(2, 0, 4).contiguous(), values.slice(2, 0, 4).contiguous()}, mask, usual_rule(dim));
      EXPECT_TRUE(in_place.equal(joined)) << precision.type << ", " << n_queries << " queries";
    }
  }
}

TEST(GroupedAttention, OfManyQueriesIsTheFormula) { expect_attention(32, 5, 40); }

}  // namespace
}  // namespace lancet
