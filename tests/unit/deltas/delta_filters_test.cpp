#include "lancet/deltas/delta_filters.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;

TEST(KeepLargestRelative, KeepsTheShareThatChangesMost) {
  torch::manual_seed(5);
  const Tensor weight = torch::randn({10, 20}, torch::kDouble);
  const LowRankDelta delta{torch::randn({10, 3}, torch::kDouble), torch::randn({3, 20}, torch::kDouble)};
  const Tensor kept = keep_largest_relative(weight, delta, 0.25).full_OI, whole = to_dense(delta);
  const Tensor is_kept = kept != 0, ratio = (whole / (weight + 1e-8)).abs();
  EXPECT_EQ(is_kept.sum().item<int64_t>(), 50);
  EXPECT_TRUE(kept.masked_select(is_kept).equal(whole.masked_select(is_kept)));
  EXPECT_GE(ratio.masked_select(is_kept).min().item<double>(), ratio.masked_select(~is_kept).max().item<double>());
  EXPECT_TRUE(keep_largest_relative(weight, delta, 1.0).full_OI.equal(whole));
}

TEST(RestrainSpectrum, ChangesOnlyWhatIsAboveTheLimit) {
  torch::manual_seed(6);
  const Tensor base = torch::randn({6, 9}, torch::kDouble);
  const Tensor limit = at::linalg_svdvals(base)[0];
  const auto [u, s, vt] = at::linalg_svd(torch::randn({6, 9}, torch::kDouble), false);
  const Tensor large = torch::tensor({8.0, 3.0, 1.5, 0.9, 0.2, 0.1}, torch::kDouble) * limit;
  const Tensor expected = torch::where(large > limit, large.log() - limit.log() + limit, large);
  const Tensor change = torch::matmul(u * large, vt), restrained = torch::matmul(u * expected, vt);
  EXPECT_LE(nmse(restrain_spectrum(base, change, std::exp(1.0)), restrained), 1e-24);
  EXPECT_LE(nmse(restrain_spectrum(base.t(), change.t(), std::exp(1.0)), restrained.t()), 1e-24);
  const Tensor small = torch::matmul(u * (0.5 * large / 8.0), vt);
  EXPECT_TRUE(torch::equal(restrain_spectrum(base, small, 2.0), small));
}

struct FilteredEdit : public ::testing::Test {
  testing::TinyModel tiny;
  CausalLM model = tiny.load();
  EditContext context{model, *tiny.tokenizer, {}, {}, {alone()}};
  std::vector<EditRequest> requests = testing::some_requests(2);

  /// Fine-tunes and finishes; the whole change of the weight.
  Tensor change(const std::string& filter, double lr) {
    const auto editor =
        testing::editor_from("{method: ft-m, modules: {down: [2]}, steps: 3, lr: " + std::to_string(lr) + filter + "}");
    WeightTransaction transaction(model);
    EditorState state;
    editor->edit(context, requests, state, transaction);
    editor->finish(context, transaction);
    const WeightTransaction::Entry& entry = transaction.entries().at(0);
    return entry.master - entry.base;
  }
};

TEST_F(FilteredEdit, RectAppliesAShareOfEachChange) {
  const Tensor whole = change("", 1e-3), part = change(", rect: {keep: 0.1}", 1e-3);
  const int64_t size = whole.numel();
  // the master adds and the test subtracts: entries that stayed are exactly 0
  EXPECT_EQ((part != 0).sum().item<int64_t>(), size / 10);
  EXPECT_GT((whole != 0).sum().item<int64_t>(), size / 2);
}

TEST_F(FilteredEdit, PruneRestrainsTheWholeChange) {
  const Tensor base = model.weight({WeightKind::kDown, 2}).clone();
  const Tensor whole = change("", 1.0), pruned = change(", prune: {log_base: 2}", 1.0);
  ASSERT_GT(at::linalg_svdvals(whole)[0].item<double>(), at::linalg_svdvals(base)[0].item<double>());
  EXPECT_LE(nmse(pruned, restrain_spectrum(base, whole, 2.0)), 1e-24);
}

TEST(KeepDominant, LeavesTheLargestDirectionsAlone) {
  torch::manual_seed(7);
  for (const auto& [rows, columns] : {std::pair{8, 12}, {12, 8}}) {
    const Tensor weight = torch::randn({rows, columns}, torch::kDouble);
    const auto [u, s, vt] = at::linalg_svd(weight, /*full_matrices=*/false);
    const Tensor shares = (s.square().cumsum(0) / s.square().sum());
    const double energy = 0.5 * (shares[2] + shares[3]).item<double>();  // four directions exceed it, three do not
    const DominantSubspace kept = dominant_subspace(weight, energy, "w");
    ASSERT_EQ(kept.left_OK.size(1), 4);
    EXPECT_LE(nmse(kept.left_OK.matmul(kept.left_OK.t()), u.narrow(1, 0, 4).matmul(u.narrow(1, 0, 4).t())), 1e-24);
    const LowRankDelta delta{torch::randn({rows, 3}, torch::kDouble), torch::randn({3, columns}, torch::kDouble)};
    const WeightDelta filtered = keep_dominant(kept, delta);
    EXPECT_EQ(std::get<LowRankDelta>(filtered).left_OR.size(1), 3) << "a column for each request stays";
    const Tensor change = to_dense(filtered);
    EXPECT_LE(u.narrow(1, 0, 4).t().matmul(change).norm().item<double>(), 1e-12);
    EXPECT_LE(change.matmul(vt.narrow(0, 0, 4).t()).norm().item<double>(), 1e-12);
    EXPECT_LE(nmse(to_dense(keep_dominant(kept, DenseDelta{to_dense(delta)})), change), 1e-24);
    const Tensor free = u.narrow(1, 4, 4).matmul(torch::randn({4, 4}, torch::kDouble)).matmul(vt.narrow(0, 4, 4));
    EXPECT_LE(nmse(to_dense(keep_dominant(kept, DenseDelta{free})), free), 1e-24) << "what acts elsewhere stays";
    EXPECT_THROW(dominant_subspace(weight, 1 - 1e-12, "w"), NumericError);
  }
}

}  // namespace
}  // namespace lancet
