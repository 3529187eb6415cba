// Batches solved from random systems, as a run solves them.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "lancet/core/strings.h"
#include "lancet/edit_history/downdate.h"
#include "lancet/editing/solvers.h"
#include "lancet/statistics/derived_store.h"
#include "support/history_support.h"

namespace lancet::testing {

inline constexpr int64_t kInputs = 48, kOutputs = 32;
/// Relative errors: the identities hold in f64 to rounding (largest seen 2e-13).
inline constexpr double kClose = 1e-9;

inline double relative(const Tensor& got, const Tensor& expected) {
  return (got - expected).norm().item<double>() / expected.norm().item<double>();
}

/// A solve as a method does it: R U of keys, with a history or without, and G^-1 where it is not I - U K.
struct Solve {
  std::string name = {};
  std::function<LowRankDelta(const Tensor& keys_FN, const Tensor& residuals_DN, const Tensor& history_FM)> solve = {};
  std::function<Tensor(const Tensor& keys_FN)> inverse_gram = {};

  /// What solves again, as the method did.
  DowndateHelp help() const {
    return {.solve =
                [solve = solve](const SolveAgain& problem) {
                  return solve(problem.system.keys_FN, problem.system.residuals_DN, problem.history_FM).right_RI;
                },
            .report = {}};
  }
};

struct Statistics {
  Tensor covariance_FF, lower_FF;
  NullSpace null_space;

  explicit Statistics(uint64_t seed) {
    torch::manual_seed(seed);
    const Tensor samples = random_f64(3 * kInputs, kInputs) * torch::linspace(0.05, 2, kInputs, torch::kDouble);
    covariance_FF = samples.t().matmul(samples) / (3.0 * kInputs);
    lower_FF = factor_covariance([&] { return covariance_FF.clone(); }, 0.0, "test");
    null_space = make_null_space(covariance_FF, {.share = 0.6}, "test");
  }
};

inline Tensor dense_inverse(const Statistics& statistics, double weight) {
  return at::linalg_inv(weight * statistics.covariance_FF);
}

inline Solve ridge(const Statistics& statistics, double weight) {
  return {.name = cat("ridge ", weight),
          .solve = [=](const Tensor& keys, const Tensor& residuals, const Tensor& history) {
            return solve_ridge({statistics.lower_FF, weight, keys, history, residuals});
          }};
}

inline Solve null_space(const Statistics& statistics, double weight) {
  return {.name = cat("null space ", weight),
          .solve = [=](const Tensor& keys, const Tensor& residuals, const Tensor& history) {
            return solve_null_space({statistics.null_space, weight, keys, history, residuals});
          }};
}

inline Solve equality(const Statistics& statistics, double weight, double slack) {
  return {.name = cat("equality ", weight, ", slack ", slack),
          .solve =
              [=](const Tensor& keys, const Tensor& residuals, const Tensor&) {
                return solve_equality({statistics.lower_FF, weight, slack, keys, residuals}).change;
              },
          .inverse_gram =
              [=](const Tensor& keys) {
                const Tensor gram = keys.t().matmul(dense_inverse(statistics, weight)).matmul(keys);
                return at::linalg_inv(gram + slack * torch::eye(keys.size(1), torch::kDouble));
              }};
}

/// What a batch asks of a weight: keys and residuals, and the edits of each key.
struct Asked {
  WeightId id = {};
  std::vector<std::vector<int64_t>> edits = {};
  Tensor keys_FN = {}, residuals_DN = {};
};

inline std::vector<std::vector<int64_t>> singles(int64_t n) {
  std::vector<std::vector<int64_t>> edits;
  for (int64_t i = 0; i < n; ++i) edits.push_back({i});
  return edits;
}

inline Asked some_asked(WeightId id, std::vector<std::vector<int64_t>> edits) {
  const auto n = static_cast<int64_t>(edits.size());
  return {id, std::move(edits), random_f64(kInputs, n), random_f64(kOutputs, n)};
}

/// Puts a change into the batch as LayerPasses does: a column for each of `n_edits`, zeros where an edit has no key.
inline void put_change(EditedBatch& batch, const Asked& asked, const Solve& solve, int64_t n_edits,
                       const Tensor& history) {
  const LowRankDelta solved = solve.solve(asked.keys_FN, asked.residuals_DN, history);
  const LowRankDelta change{torch::zeros({kOutputs, n_edits}, torch::kDouble),
                            torch::zeros({n_edits, kInputs}, torch::kDouble)};
  for (size_t key = 0; key < asked.edits.size(); ++key)
    for (const int64_t edit : asked.edits[key]) {
      const auto column = static_cast<int64_t>(key);
      change.left_OR.select(1, edit).copy_(solved.left_OR.select(1, column) /
                                           static_cast<double>(asked.edits[key].size()));
      change.right_RI.select(0, edit).copy_(solved.right_RI.select(0, column));
    }
  auto weight = std::ranges::find_if(batch.changes, [&](const WeightChanges& each) { return each.id == asked.id; });
  if (weight == batch.changes.end()) weight = batch.changes.insert(batch.changes.end(), {asked.id, {}});
  SolvedSystem system{.id = asked.id,
                      .change = static_cast<int64_t>(weight->deltas.size()),
                      .edits = asked.edits,
                      .keys_FN = asked.keys_FN,
                      .residuals_DN = asked.residuals_DN};
  if (solve.inverse_gram) system.inverse_gram_NN = solve.inverse_gram(asked.keys_FN);
  weight->deltas.emplace_back(change);
  batch.systems.push_back(std::move(system));
}

/// Entry of `n` edits whose changes are `n_changes` of each weight.
inline BatchEntry entry_of(int64_t n, int64_t n_changes, const std::string& prefix = "e") {
  std::vector<std::string> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(cat(prefix, i));
  BatchEntry entry = history_entry(ids);
  for (int64_t i = 0; i < n; ++i) entry.edits[static_cast<size_t>(i)].prompt_ids = {1, 100 + i, 5};
  entry.columns.clear();
  for (int64_t change = 0; change < n_changes; ++change)
    for (int64_t i = 0; i < n; ++i) entry.columns.push_back(i);
  return entry;
}

/// What is left of the asked without the edits, keys of theirs alone gone.
inline Asked without(const Asked& asked, const std::set<int64_t>& places) {
  Asked fewer{.id = asked.id};
  std::vector<int64_t> kept;
  for (size_t key = 0; key < asked.edits.size(); ++key) {
    std::vector<int64_t> edits;
    for (const int64_t edit : asked.edits[key])
      if (!places.contains(edit)) edits.push_back(edit - std::distance(places.begin(), places.lower_bound(edit)));
    if (edits.empty()) continue;
    fewer.edits.push_back(edits);
    kept.push_back(static_cast<int64_t>(key));
  }
  fewer.keys_FN = asked.keys_FN.index_select(1, torch::tensor(kept, torch::kLong));
  fewer.residuals_DN = asked.residuals_DN.index_select(1, torch::tensor(kept, torch::kLong));
  return fewer;
}

inline void expect_close(const EditedBatch& got, const EditedBatch& expected, const std::string& what) {
  ASSERT_EQ(got.changes.size(), expected.changes.size()) << what;
  for (size_t i = 0; i < got.changes.size(); ++i) {
    EXPECT_EQ(got.changes[i].id, expected.changes[i].id);
    ASSERT_EQ(got.changes[i].deltas.size(), expected.changes[i].deltas.size()) << what;
    for (size_t j = 0; j < got.changes[i].deltas.size(); ++j) {
      const auto &one = std::get<LowRankDelta>(got.changes[i].deltas[j]),
                 &other = std::get<LowRankDelta>(expected.changes[i].deltas[j]);
      EXPECT_TRUE(one.left_OR.equal(other.left_OR)) << what;
      EXPECT_LE(relative(one.right_RI, other.right_RI), kClose) << what;
      EXPECT_LE(relative(to_dense(one), to_dense(other)), kClose) << what;
    }
  }
  ASSERT_EQ(got.systems.size(), expected.systems.size()) << what;
  for (size_t i = 0; i < got.systems.size(); ++i) {
    const SolvedSystem &one = got.systems[i], &other = expected.systems[i];
    EXPECT_EQ(one.edits, other.edits) << what;
    EXPECT_EQ(one.change, other.change) << what;
    EXPECT_TRUE(one.keys_FN.equal(other.keys_FN)) << what;
    EXPECT_TRUE(one.residuals_DN.equal(other.residuals_DN)) << what;
    ASSERT_EQ(one.inverse_gram_NN.defined(), other.inverse_gram_NN.defined()) << what;
    if (other.inverse_gram_NN.defined()) {
      EXPECT_LE(relative(one.inverse_gram_NN, other.inverse_gram_NN), kClose) << what;
    }
  }
}

inline std::vector<Solve> all_solves(const Statistics& statistics) {
  return {ridge(statistics, 0.3),         ridge(statistics, 20),      null_space(statistics, 10),
          null_space(statistics, 0.5),    equality(statistics, 1, 0), equality(statistics, 3, 0.25),
          equality(statistics, 300, 1e-3)};
}

}  // namespace lancet::testing
