// Histories of edits for tests, on the tiny model's shapes.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"
#include "support/tiny_model.h"

namespace lancet::testing {

inline const WeightId kDown1{WeightKind::kDown, 1}, kDown2{WeightKind::kDown, 2};

inline EditRecord history_edit(const std::string& id) {
  EditRecord edit;
  edit.request.id = id;
  edit.request.subject = "subject " + id;
  edit.request.prompt = fill_prompt("{} lies in", edit.request.subject, "test");
  edit.request.target = "target";
  edit.prompt_ids = {1, 17, 400};
  edit.target_ids = {9};
  edit.lookup = 1;
  return edit;
}

inline BatchEntry history_entry(const std::vector<std::string>& ids) {
  BatchEntry entry;
  entry.when = "2026-11-23T08:00:00Z";
  for (const std::string& id : ids) {
    entry.columns.push_back(static_cast<int64_t>(entry.edits.size()));
    entry.edits.push_back(history_edit(id));
  }
  return entry;
}

inline Tensor random_f64(int64_t rows, int64_t columns) { return torch::randn({rows, columns}, torch::kDouble); }

/// Two layers of [32, 48], a dense change besides, systems of both kinds, and a step of a state.
inline EditedBatch history_batch(int64_t n_edits, uint64_t seed) {
  torch::manual_seed(seed);
  EditedBatch batch;
  for (const WeightId& id : {kDown2, kDown1}) {
    const LowRankDelta change{random_f64(32, n_edits), random_f64(n_edits, 48)};
    batch.changes.push_back({id, {change}});
    SolvedSystem system{.id = id, .keys_FN = random_f64(48, n_edits), .residuals_DN = change.left_OR};
    for (int64_t i = 0; i < n_edits; ++i) system.edits.push_back({i});
    if (id == kDown1) {
      system.residuals_DN = random_f64(32, n_edits);
      system.inverse_gram_NN = random_f64(n_edits, n_edits);
    }
    batch.systems.push_back(system);
  }
  batch.changes[0].deltas.emplace_back(DenseDelta{torch::randn({32, 48}, torch::kFloat)});
  batch.state.edits = n_edits;
  if (seed == 1)
    batch.state.replaced["keys.1"] = random_f64(48, n_edits);
  else
    batch.state.appended["keys.1"] = random_f64(48, n_edits);
  return batch;
}

inline void expect_same_tensor(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(got.defined(), expected.defined()) << what;
  if (!expected.defined()) return;
  EXPECT_EQ(got.scalar_type(), expected.scalar_type()) << what;
  EXPECT_TRUE(got.equal(expected)) << what;
}

inline void expect_same_changes(const std::vector<WeightChanges>& got, const std::vector<WeightChanges>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].id, expected[i].id);
    ASSERT_EQ(got[i].deltas.size(), expected[i].deltas.size());
    for (size_t j = 0; j < got[i].deltas.size(); ++j) {
      const WeightDelta &one = got[i].deltas[j], &other = expected[i].deltas[j];
      ASSERT_EQ(one.index(), other.index());
      if (const auto* low_rank = std::get_if<LowRankDelta>(&one)) {
        expect_same_tensor(low_rank->left_OR, std::get<LowRankDelta>(other).left_OR, "left");
        expect_same_tensor(low_rank->right_RI, std::get<LowRankDelta>(other).right_RI, "right");
      } else {
        expect_same_tensor(std::get<DenseDelta>(one).full_OI, std::get<DenseDelta>(other).full_OI, "full");
      }
    }
  }
}

inline void expect_same_batch(const EditedBatch& got, const EditedBatch& expected) {
  expect_same_changes(got.changes, expected.changes);
  ASSERT_EQ(got.systems.size(), expected.systems.size());
  for (size_t i = 0; i < got.systems.size(); ++i) {
    const SolvedSystem &one = got.systems[i], &other = expected.systems[i];
    EXPECT_EQ(one.id, other.id);
    EXPECT_EQ(one.change, other.change);
    EXPECT_EQ(one.edits, other.edits);
    expect_same_tensor(one.keys_FN, other.keys_FN, "keys");
    expect_same_tensor(one.residuals_DN, other.residuals_DN, "residuals");
    expect_same_tensor(one.inverse_gram_NN, other.inverse_gram_NN, "inverse gram");
  }
  EXPECT_EQ(got.state.edits, expected.state.edits);
  ASSERT_EQ(got.state.appended.size(), expected.state.appended.size());
  for (const auto& [name, tensor] : expected.state.appended)
    expect_same_tensor(got.state.appended.at(name), tensor, name);
  ASSERT_EQ(got.state.replaced.size(), expected.state.replaced.size());
  for (const auto& [name, tensor] : expected.state.replaced)
    expect_same_tensor(got.state.replaced.at(name), tensor, name);
}

}  // namespace lancet::testing
