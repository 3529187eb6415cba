// The loops of the host against chains of torch's operations, results and gradients, in every type they have.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <functional>

#include "lancet/kernels/attention.h"
#include "lancet/kernels/decoder_ops.h"
#include "lancet/kernels/linear.h"
#include "support/kernel_checks.h"

namespace lancet {
namespace {

using Tensors = std::vector<Tensor>;

using testing::kHostTypes;

TEST(DecoderOps, RmsNormIsTheFormula) {
  const double eps = 1e-5;
  const Tensor weight = testing::random_numbers({48}, 2);
  const auto formula = [&](const Tensors& in) {
    const Tensor w = weight.to(at::kBFloat16).to(at::kDouble);
    return w * in[0] * torch::rsqrt(in[0].square().mean(-1, true) + eps);
  };
  const auto ours = [&](const Tensors& in) {
    return rms_norm(in[0], weight.to(at::kBFloat16).to(in[0].scalar_type()), eps);
  };
  testing::expect_formula(ours, formula,
                          {testing::random_numbers({3, 700, 48}, 1)});  // more rows than one thread takes
}

TEST(DecoderOps, RmsNormGivesAGradientToAWeightThatWantsOne) {
  const auto formula = [](const Tensors& in) {
    return in[1] * in[0] * torch::rsqrt(in[0].square().mean(-1, true) + 1e-5);
  };
  const auto ours = [](const Tensors& in) { return rms_norm(in[0], in[1], 1e-5); };
  testing::expect_formula(ours, formula, {testing::random_numbers({3, 5, 48}, 1), testing::random_numbers({48}, 2)});
}

TEST(DecoderOps, AddRmsNormIsASumAndItsNorm) {
  const Tensor weight = testing::random_numbers({48}, 2).to(at::kBFloat16);
  const Tensor x = testing::random_numbers({3, 5, 48}, 1).to(at::kBFloat16), added = 2 * x.flip(0);
  const NormedSum both = add_rms_norm(x, added, weight, 1e-5);
  EXPECT_TRUE(torch::equal(both.sum, x + added));
  EXPECT_TRUE(torch::equal(both.normed, rms_norm(x + added, weight, 1e-5)));
}

TEST(TokenLosses, AreLogSoftmaxAtTheIds) {
  const Tensor ids = torch::arange(6) * 5 % 33;
  const auto formula = [&](const Tensors& in) {
    return -torch::log_softmax(in[0], 1).gather(1, ids.unsqueeze(1)).squeeze(1);
  };
  const auto ours = [&](const Tensors& in) { return token_losses(in[0], ids, LossExtra::kNone).loss_N; };
  testing::expect_formula(ours, formula, {5 * testing::random_numbers({6, 33}, 8)});
  const Tensor logits = testing::random_numbers({6, 33}, 8).to(at::kBFloat16);
  const TokenLosses losses = token_losses(logits, ids, LossExtra::kGreatest);
  EXPECT_TRUE(torch::equal(losses.greatest_N, torch::log_softmax(logits.to(at::kFloat), 1).amax(1)));
  EXPECT_FALSE(token_losses(logits, ids, LossExtra::kNone).greatest_N.defined());
}

TEST(DecoderOps, SiluTimesIsTheFormula) {
  const auto formula = [](const Tensors& in) { return in[0] * torch::sigmoid(in[0]) * in[1]; };
  const auto ours = [](const Tensors& in) { return silu_times(in[0], in[1]); };
  testing::expect_formula(ours, formula,
                          {8 * testing::random_numbers({5, 7, 1001}, 3), testing::random_numbers({5, 7, 1001}, 4)});
}

/// Odd widths, and one that loops take whole.
TEST(DecoderOps, SiluTimesTakesHalvesOfRows) {
  const auto formula = [](const Tensors& in) {
    const auto halves = in[0].chunk(2, -1);
    return halves[0] * torch::sigmoid(halves[0]) * halves[1];
  };
  for (const int64_t width : {1, 31, 768})
    testing::expect_formula([](const Tensors& in) { return silu_times_halves(in[0]); }, formula,
                            {4 * testing::random_numbers({5, 7, 2 * width}, 3)});
  const Tensor both = 4 * testing::random_numbers({3, 96}, 3).to(at::kBFloat16);
  const auto halves = both.chunk(2, -1);
  EXPECT_TRUE(torch::equal(silu_times_halves(both), silu_times(halves[0], halves[1])));
}

TEST(DecoderOps, SiluTimesBearsInfinitiesOfTheExponential) {
  const Tensor gate = torch::tensor({-1e4F, -100.0F, 0.0F, 100.0F, 1e4F});
  const Tensor y = silu_times(gate, torch::ones(5));
  EXPECT_TRUE(torch::equal(y, torch::tensor({-0.0F, y[1].item<float>(), 0.0F, 100.0F, 1e4F})));
  EXPECT_NEAR(y[1].item<float>(), 0.0F, 1e-30);
}

TEST(DecoderOps, RotatePairsIsAComplexProduct) {
  const Tensor angle = testing::random_numbers({2, 9, 1, 5}, 6);
  const Tensor both = torch::cat({angle, angle}, 3);
  const auto formula = [&](const Tensors& in) {
    const auto halves = in[0].chunk(2, -1);
    const Tensor turned = torch::complex(halves[0], halves[1]) * torch::polar(torch::ones_like(angle), angle);
    return torch::cat({torch::real(turned), torch::imag(turned)}, -1);
  };
  const auto ours = [&](const Tensors& in) {
    return rotate_pairs(in[0], both.cos().to(in[0].scalar_type()), both.sin().to(in[0].scalar_type()));
  };
  testing::expect_formula(ours, formula, {testing::random_numbers({2, 9, 3, 10}, 7)});
}

/// Heads of a product's rows, turned by torch's operations, side by side again: queries', keys' and values' differ.
Tensor split_by_torch(const Tensor& joined, HeadCounts counts, const RotaryTables& tables) {
  const auto parts =
      joined.unflatten(2, {-1, counts.dim}).split_with_sizes({counts.heads, counts.kv_heads, counts.kv_heads}, 2);
  const auto turned = [&](const Tensor& x) {
    if (!tables.cos_BT1C.defined()) return x;
    const auto halves = x.chunk(2, -1);
    return x * tables.cos_BT1C + torch::cat({-halves[1], halves[0]}, -1) * tables.sin_BT1C;
  };
  return torch::cat({turned(parts[0]), 2 * turned(parts[1]), 3 * parts[2]}, 2);
}

TEST(DecoderOps, SplitHeadsAreTheProductsTurned) {
  const HeadCounts counts{4, 2, 10};
  const Tensor joined = testing::random_numbers({2, 9, 80}, 7);
  for (const bool turns : {true, false}) {
    const auto tables = [&](const Tensor& x) {
      const auto table = [&](int64_t seed) {
        return testing::random_numbers({2, 9, 1, 10}, seed).to(at::kBFloat16).to(x.scalar_type());
      };
      return turns ? RotaryTables{table(8), table(9)} : RotaryTables{};
    };
    testing::expect_formula(
        [&](const Tensors& in) {
          const SplitHeads heads = split_heads(in[0], counts, tables(in[0]));
          return torch::cat({heads.query_BTHC, 2 * heads.key_BTKC, 3 * heads.value_BTKC}, 2);
        },
        [&](const Tensors& in) { return split_by_torch(in[0], counts, tables(in[0])); }, {joined});
  }
}

/// Softmax attention written out, one key/value head per query head.
Tensor plain_attention(const Tensor& query_BQHC, const Tensor& key_BSKC, const Tensor& value_BSKC, const Tensor& mask,
                       const Tensor& sinks_H) {
  const int64_t group = query_BQHC.size(2) / key_BSKC.size(2);
  const Tensor keys = key_BSKC.repeat_interleave(group, 2), values = value_BSKC.repeat_interleave(group, 2);
  Tensor scores =
      torch::einsum("bqhc,bshc->bhqs", {query_BQHC, keys}) / std::sqrt(static_cast<double>(query_BQHC.size(3)));
  scores = scores.masked_fill(mask.logical_not(), -INFINITY);
  if (sinks_H.defined())
    scores = torch::cat({scores, sinks_H.view({1, -1, 1, 1}).expand({scores.size(0), -1, scores.size(2), 1})}, 3);
  const Tensor weights = torch::softmax(scores, -1).narrow(3, 0, keys.size(1));
  return torch::einsum("bhqs,bshc->bqhc", {weights, values}).flatten(2);
}

void expect_attention(int64_t dim, int64_t n_prefix, int64_t n_queries, const Tensor& sinks_H = {}) {
  const int64_t n_rows = 3, n_fresh = 6, heads = 4, kv_heads = 2;
  const KeyValuePair prefix{testing::random_numbers({n_rows, kv_heads, n_prefix, dim}, 11),
                            testing::random_numbers({n_rows, kv_heads, n_prefix, dim}, 12)};
  // as stored: bf16 and f32 see the same prefix
  const auto rounded = [](const Tensor& x) { return x.to(at::kBFloat16).to(at::kDouble); };
  Tensor mask = testing::random_numbers({n_rows, 1, n_queries, n_prefix + n_fresh}, 13) > 0;
  mask.select(3, n_prefix).fill_(true);  // every query sees something
  const auto formula = [&](const Tensors& in) {
    return plain_attention(in[0], torch::cat({rounded(prefix.key).transpose(1, 2), in[1]}, 1),
                           torch::cat({rounded(prefix.value).transpose(1, 2), in[2]}, 1), mask, sinks_H);
  };
  const auto ours = [&](const Tensors& in) {
    const auto typed = [&](const Tensor& x) { return rounded(x).to(in[0].scalar_type()); };
    const KeyValuePair before = n_prefix > 0 ? KeyValuePair{typed(prefix.key), typed(prefix.value)} : KeyValuePair{};
    return grouped_attention(in[0], {in[1], in[2]}, before, mask, {usual_rule(dim).scale, 0, sinks_H});
  };
  testing::expect_formula(ours, formula,
                          {testing::random_numbers({n_rows, n_queries, heads, dim}, 14),
                           testing::random_numbers({n_rows, n_fresh, kv_heads, dim}, 15),
                           testing::random_numbers({n_rows, n_fresh, kv_heads, dim}, 16)});
}

TEST(GroupedAttention, OfFewQueriesIsTheFormula) {
  for (const int64_t dim : {6, 32, 64, 128}) expect_attention(dim, 5, 4);
}

TEST(GroupedAttention, WithSinksIsTheFormula) {
  const Tensor sinks_H = torch::tensor({-1.5, 0.25, 1.0, 3.0}, at::kDouble);
  for (const int64_t n_queries : {4, 40}) expect_attention(32, 5, n_queries, sinks_H);
}

TEST(GroupedAttention, WithoutPrefixIsTheFormula) { expect_attention(32, 0, 6); }

/// All keys in a memory that is longer than what is in use: the same as their copy.
TEST(GroupedAttention, ReadsAPartOfALongerMemory) {
  const int64_t n_rows = 3, room = 9, used = 7, heads = 4, kv_heads = 2, dim = 32;
  for (const testing::TypeLimit& precision : kHostTypes) {
    const auto typed = [&](const Tensor& x) { return x.to(precision.type); };
    const Tensor keys =
        typed(testing::random_numbers({n_rows + 1, kv_heads, room, dim}, 21)).narrow(0, 0, n_rows).narrow(2, 0, used);
    const Tensor values =
        typed(testing::random_numbers({n_rows + 1, kv_heads, room, dim}, 22)).narrow(0, 0, n_rows).narrow(2, 0, used);
    for (const int64_t n_queries : {1, 40}) {
      const Tensor query = typed(testing::random_numbers({n_rows, n_queries, heads, dim}, 23));
      const Tensor none = typed(testing::random_numbers({n_rows, 0, kv_heads, dim}, 24));
      Tensor mask = testing::random_numbers({n_rows, 1, n_queries, used}, 25) > 0;
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
