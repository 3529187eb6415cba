// The whole change of a weight under a budget of what text may move, against plain solves.
#include "lancet/editing/text_budget.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/editing/solvers.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;

constexpr int64_t kKeySize = 24;

Tensor some_numbers(int64_t rows, int64_t columns) { return torch::randn({rows, columns}, torch::kDouble); }

/// L, lower triangular, of some positive definite C.
Tensor some_factor() {
  return torch::tril(some_numbers(kKeySize, kKeySize)) + 3 * torch::eye(kKeySize, torch::kDouble);
}

TEST(EnergyOnText, IsTheTraceAndOfExpertsTheSumOfTheirs) {
  const Tensor lower = some_factor(), weight = some_numbers(5, kKeySize);
  EXPECT_NEAR(energy_on_text(weight, lower), weight.matmul(lower.matmul(lower.t())).mul(weight).sum().item<double>(),
              1e-9);
  const Tensor blocks = torch::stack({lower.slice(0, 0, 12).slice(1, 0, 12), lower.slice(0, 12).slice(1, 12)});
  EXPECT_NEAR(energy_on_text(weight, blocks),
              energy_on_text(weight.slice(1, 0, 12), blocks[0]) + energy_on_text(weight.slice(1, 12), blocks[1]), 1e-9);
}

TEST(SolveWithinBudget, IsTheRidgeSolveOfTheLeastWeightThatKeepsToIt) {
  torch::manual_seed(3);
  const Tensor lower = some_factor();
  for (const int64_t n_keys : {5, 40}) {  // fewer than their size, and more
    const Tensor keys = some_numbers(kKeySize, n_keys), changes = some_numbers(7, n_keys);
    const auto ridge = [&](double weight) { return to_dense(solve_ridge({lower, weight, keys, {}, changes})); };
    const double free = energy_on_text(ridge(0.1), lower);
    const BudgetSolution loose = solve_within_budget({lower, 0.1, keys, changes, 1.01 * free});
    EXPECT_EQ(loose.covariance_weight, 0.1);
    EXPECT_LE(nmse(to_dense(loose.total), ridge(0.1)), 1e-20);
    for (const double share : {0.5, 1e-6}) {
      const BudgetSolution tight = solve_within_budget({lower, 0.1, keys, changes, share * free});
      EXPECT_LE(nmse(to_dense(tight.total), ridge(tight.covariance_weight)), 1e-18);
      EXPECT_LE(tight.energy, share * free);
      EXPECT_NEAR(energy_on_text(to_dense(tight.total), lower), share * free, 1e-9 * share * free);
    }
  }
  EXPECT_THROW(solve_within_budget({lower, 0.1, some_numbers(kKeySize, 2) * std::nan(""), some_numbers(7, 2), 1}),
               NumericError);
}

/// Compares what text is moved by after each of three batches, as a share of the unedited outputs' mean square: both
/// layers at most.
TEST(TextBudget, HoldsAfterEveryBatchWhereThePlainStreamExceedsIt) {
  const testing::TinyModel tiny;
  CausalLM model = tiny.load();
  const Tensor lower = torch::diag(torch::linspace(0.5, 2.0, 48, torch::kDouble));
  const EditContext context(model, *tiny.tokenizer, {"{}"}, {.factor = [&](int64_t) { return lower; }}, {alone()});
  const auto moved = [&](const std::string& options) {
    const auto editor = testing::editor_from(cat("{method: memit, layers: [0, 1], covariance_weight: 2, ", options,
                                                 ", values: {steps: 6, lr: 0.5}, contexts: ['{}']}"));
    EditorState state;
    WeightTransaction transaction(model);
    std::vector<double> most;
    for (const EditRequest& request : testing::some_requests(3)) {
      editor->edit(context, std::vector{request}, state, transaction);
      most.push_back(0);
      for (const WeightTransaction::Entry& entry : transaction.entries())
        most.back() = std::max(most.back(), energy_on_text((entry.master - entry.base).to(torch::kDouble), lower) /
                                                energy_on_text(entry.base.to(torch::kDouble), lower));
    }
    return most;
  };
  const std::vector<double> plain = moved("history: true");
  EXPECT_LT(plain[0], plain[2]);
  const double budget = plain[0] + (plain[2] - plain[0]) / 4;
  const std::vector<double> held = moved(cat("text_budget: ", budget));
  EXPECT_NEAR(held[0], plain[0], 1e-9 * budget);  // what keeps to it by itself is as it is
  EXPECT_NEAR(held[2], budget, 1e-5 * budget);
  for (const double share : held) EXPECT_LE(share, budget * (1 + 1e-5));
}

}  // namespace
}  // namespace lancet
