// Attention of ragged rows against the formula, token by token in f64: results and gradients, in every type. As loops,
// as a chain of torch's operations (f16 on the host), and as the GPUs' kernels run on the host.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <numeric>

#include "lancet/core/error.h"
#include "lancet/kernels/ragged_attention.h"
#include "support/emulated_kernels.h"
#include "support/kernel_checks.h"

namespace lancet {
namespace {

using Tensors = std::vector<Tensor>;

constexpr int64_t kPoolTokens = 9, kKeyHeads = 2;

/// Rows that share earlier tokens, one without any, and one of a single token.
RaggedLayout some_layout() {
  RaggedLayout layout;
  layout.tokens = {3, 1, 5, 2};
  layout.earlier = {{0, 1, 2, 7}, {0, 1}, {}, {0, 1, 2, 3, 8, 4}};
  layout.queries.resize(static_cast<size_t>(layout.n_tokens()));
  std::iota(layout.queries.begin(), layout.queries.end(), int64_t{0});
  return layout;
}

/// [M, H * C]: query m of `query` is the layout's m-th one.
Tensor plain_attention(const Tensors& in, const KeyValuePair& pool_KSC, const RaggedLayout& layout,
                       AttentionRule rule) {
  std::vector<Tensor> parts;
  size_t m = 0;
  int64_t begin = 0;
  for (size_t row = 0; row < layout.tokens.size(); begin += layout.tokens[row++]) {
    for (; m < layout.queries.size() && layout.queries[m] < begin + layout.tokens[row]; ++m) {
      const int64_t own = layout.queries[m] - begin + 1;
      const Tensor places = torch::tensor(layout.earlier[row], torch::kLong);
      const auto seen = [&](const Tensor& pool, const Tensor& fresh) {  // [S, H, C]
        Tensor all = torch::cat({pool.index_select(1, places).transpose(0, 1), fresh.narrow(0, begin, own)});
        if (layout.window > 0) all = all.slice(0, std::max<int64_t>(0, all.size(0) - layout.window));
        return all.repeat_interleave(in[0].size(1) / kKeyHeads, 1);
      };
      Tensor scores =
          torch::einsum("hc,shc->hs", {in[0][static_cast<int64_t>(m)], seen(pool_KSC.key, in[1])}) * rule.scale;
      if (rule.cap > 0) scores = torch::tanh(scores / rule.cap) * rule.cap;
      if (rule.sinks_H.defined()) scores = torch::cat({scores, rule.sinks_H.to(at::kDouble).unsqueeze(1)}, 1);
      const Tensor value = seen(pool_KSC.value, in[2]);
      parts.push_back(torch::einsum("hs,shc->hc", {scores.softmax(-1).narrow(1, 0, value.size(0)), value}).flatten());
    }
  }
  return torch::stack(parts);
}

struct Heads {
  int64_t group;  ///< heads that share keys
  int64_t dim;
};

/// What attention of a layout is compared by.
struct RaggedCase {
  testing::TensorFunction ours, formula;
  Tensors inputs;
};

/// How scores are bent in a test.
struct Bend {
  double cap = 0;
  Tensor sinks_H = {};
};

/// Scores as large as others: of some heads much, of others little.
Tensor some_sinks(Heads heads) {
  return 2 * testing::random_numbers({kKeyHeads * heads.group}, 36).to(at::kBFloat16).to(at::kDouble);
}

RaggedCase ragged_case(const RaggedLayout& layout, Heads heads, const Bend& bend) {
  const int64_t dim = heads.dim, n_queries = std::ssize(layout.queries);
  const AttentionRule rule{usual_rule(dim).scale, bend.cap, bend.sinks_H};
  // as stored: every type sees the same pool; a part of a longer memory
  const auto rounded = [](const Tensor& x) { return x.to(at::kBFloat16).to(at::kDouble); };
  const auto part = [](const Tensor& memory) { return memory.narrow(1, 0, kPoolTokens); };
  const Tensor key = rounded(testing::random_numbers({kKeyHeads, kPoolTokens + 4, dim}, 31));
  const Tensor value = rounded(testing::random_numbers({kKeyHeads, kPoolTokens + 4, dim}, 32));
  const auto ours = [=](const Tensors& in) {
    const at::ScalarType type = in[0].scalar_type();
    return ragged_attention(in[0], {in[1], in[2]}, {part(key.to(type)), part(value.to(type))},
                            ragged_rows(layout, in[0].device(), type), rule);
  };
  const auto formula = [=](const Tensors& in) { return plain_attention(in, {part(key), part(value)}, layout, rule); };
  return {ours,
          formula,
          {3 * testing::random_numbers({n_queries, kKeyHeads * heads.group, dim}, 33),
           testing::random_numbers({layout.n_tokens(), kKeyHeads, dim}, 34),
           testing::random_numbers({layout.n_tokens(), kKeyHeads, dim}, 35)}};
}

void expect_ragged(const RaggedLayout& layout, Heads heads, const Bend& bend = {}) {
  const RaggedCase attention = ragged_case(layout, heads, bend);
  testing::expect_formula(attention.ours, attention.formula, attention.inputs, testing::kKernelTypes);
}

TEST(RaggedAttention, IsTheFormula) {
  for (const int64_t dim : {6, 32, 64, 128}) expect_ragged(some_layout(), {3, dim});
  for (const int64_t group : {1, 7}) expect_ragged(some_layout(), {group, 40});
}

TEST(RaggedAttention, OfSomeQueriesIsTheFormula) {
  RaggedLayout layout = some_layout();
  layout.queries = {1, 3, 4, 8, 10};
  expect_ragged(layout, {3, 32});
}

TEST(RaggedAttention, WithAWindowIsTheFormula) {
  for (const int64_t window : {2, 4, 50}) {
    RaggedLayout layout = some_layout();
    layout.window = window;
    expect_ragged(layout, {3, 32});
  }
}

TEST(RaggedAttention, WithACapIsTheFormula) { expect_ragged(some_layout(), {3, 32}, {1.5}); }

TEST(RaggedAttention, WithSinksIsTheFormula) {
  RaggedLayout layout = some_layout();
  layout.window = 3;
  for (const Heads heads : {Heads{3, 32}, Heads{1, 6}}) expect_ragged(layout, heads, {0, some_sinks(heads)});
}

TEST(RaggedAttention, WithoutEarlierTokensIsTheFormula) {
  RaggedLayout layout = some_layout();
  for (std::vector<int64_t>& row : layout.earlier) row.clear();
  expect_ragged(layout, {3, 32});
}

/// The GPUs' kernels on the host: heads narrower than a pack of 128 bits, some lanes idle, and as wide as they may be.
TEST(RaggedAttention, OfKernelsIsTheFormula) {
  RaggedLayout layout;
  layout.tokens = {3, 1, 2};
  layout.earlier = {{0, 1, 2, 7, 3}, {}, {4, 8}};
  layout.queries = {0, 1, 2, 3, 5};
  const auto expect = [&](Heads heads, const Bend& bend, std::span<const testing::TypeLimit> types) {
    const RaggedCase attention = ragged_case(layout, heads, bend);
    for (const testing::ThreadOrder order : {testing::ThreadOrder::kAscending, testing::ThreadOrder::kDescending}) {
      testing::EmulatedKernels kernels(order);
      const LauncherScope scope(kernels);
      testing::expect_formula(attention.ours, attention.formula, attention.inputs, types);
      EXPECT_EQ(kernels.launches(), 3 * std::ssize(types));  // one forward, two back
    }
  };
  const std::span<const testing::TypeLimit> all(testing::kKernelTypes);
  expect({2, 6}, {}, all);
  expect({1, 256}, {}, all.first(1));
  layout.window = 4;
  expect({1, 40}, {1.5}, all);
  expect({2, 6}, {0, some_sinks({2, 6})}, all);
}

TEST(RaggedAttention, RefusesHeadsThatTheKernelsDoNotTake) {
  testing::EmulatedKernels kernels(testing::ThreadOrder::kAscending);
  const LauncherScope scope(kernels);
  const RaggedCase attention = ragged_case(some_layout(), {1, 264}, {});
  EXPECT_THROW(attention.ours(attention.inputs), PlacementError);
}

}  // namespace
}  // namespace lancet
