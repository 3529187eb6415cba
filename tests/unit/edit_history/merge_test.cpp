#include "lancet/edit_history/merge.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "solved_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;

using HistoryList = std::vector<const EditHistory*>;

struct MergeTest : public ::testing::Test {
  /// A batch of `asked` after what the history has, with the keys that it has where `keeps_history`.
  void put(EditHistory& history, const std::string& prefix, const std::vector<Asked>& asked, const Solve& solve,
           bool keeps_history = false) const {
    const auto n = static_cast<int64_t>(asked[0].edits.size());
    const EditorState before = history.state({});
    EditorState after = before;
    EditedBatch batch;
    for (const Asked& one : asked) {
      put_change(batch, one, solve, n, columns_of(before, cat("keys.", one.id.layer)));
      if (keeps_history) append_columns(after, cat("keys.", one.id.layer), one.keys_FN);
    }
    after.edits += n;
    batch.state = step_between(before, after);
    BatchEntry entry = entry_of(n, 1, prefix);
    history.add(std::move(entry), std::move(batch), tiny.config);
  }

  EditHistory fresh(const std::string& method = "memit") const {
    EditHistory history({.weights = "aa"});
    history.journal().add_setting({.method = method});
    return history;
  }

  static std::vector<Asked> some(int64_t n) { return {some_asked(kDown1, singles(n)), some_asked(kDown2, singles(n))}; }

  JointOptions jointly(const Solve& solve) const {
    JointOptions options;
    options.solve = [solve](WeightId, const Tensor& keys_FN, const Tensor& residuals_DN) {
      JointSolution solution{.delta = solve.solve(keys_FN, residuals_DN, {})};
      if (solve.inverse_gram) solution.inverse_gram_NN = solve.inverse_gram(keys_FN);
      return solution;
    };
    return options;
  }

  static Tensor dense_of(const std::vector<WeightChanges>& changes, WeightId id) {
    Tensor sum = torch::zeros({kOutputs, kInputs}, torch::kDouble);
    for (const WeightChanges& weight : changes)
      if (weight.id == id)
        for (const WeightDelta& delta : weight.deltas) sum = sum + to_dense(delta);
    return sum;
  }

  const Statistics statistics{12};
  TinyModel tiny;
};

Asked both(const Asked& one, const Asked& other) {
  const auto n = static_cast<int64_t>(one.edits.size() + other.edits.size());
  return {one.id, singles(n), torch::cat({one.keys_FN, other.keys_FN}, 1),
          torch::cat({one.residuals_DN, other.residuals_DN}, 1)};
}

TEST_F(MergeTest, JointIsTheSolveOfAllAtOnce) {
  for (const Solve& solve : all_solves(statistics)) {
    const std::vector<Asked> a = some(4), b = some(3);
    EditHistory one = fresh(), other = fresh();
    put(one, "a", a, solve);
    put(other, "b", b, solve);
    EditedBatch expected;
    for (size_t i = 0; i < 2; ++i) put_change(expected, both(a[i], b[i]), solve, 7, {});
    const JointBatch joint = solve_jointly(HistoryList{&one, &other}, jointly(solve));
    expect_close(joint.batch, expected, solve.name);
    EXPECT_EQ(joint.entry.edits.size(), 7u);
    EXPECT_EQ(joint.entry.edits[4].request.id, "b0");
    EXPECT_EQ(joint.entry.columns, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(joint.batch.state.edits, 7);
    // and an edit can leave it again
    EditedBatch fewer;
    for (size_t i = 0; i < 2; ++i) put_change(fewer, without(both(a[i], b[i]), {1, 5}), solve, 5, {});
    expect_close(without_edits(joint.batch, joint.entry, {1, 5}).batch, fewer, solve.name);
    // or stay out
    JointOptions options = jointly(solve);
    options.drop = {"a1", "b1"};
    expect_close(solve_jointly(HistoryList{&one, &other}, options).batch, fewer, solve.name);
  }
}

/// The sum of changes before, and the residual, are what the values are to differ by from the unedited weight's.
TEST_F(MergeTest, AsksOfLaterChangesWhatTheyAskedInAll) {
  const Solve solve = ridge(statistics, 0.5);
  const std::vector<Asked> first = some(2), second = some(3);
  EditHistory history = fresh();
  put(history, "a", first, solve);
  put(history, "b", second, solve);
  const std::vector<AskedKeys> asked = asked_in_all(history);
  ASSERT_EQ(asked.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Tensor before = dense_of(history.batches()[0].changes, first[i].id);
    EXPECT_EQ(asked[i].id, first[i].id);
    EXPECT_TRUE(asked[i].keys_FN.equal(torch::cat({first[i].keys_FN, second[i].keys_FN}, 1)));
    const Tensor expected =
        torch::cat({first[i].residuals_DN, second[i].residuals_DN + before.matmul(second[i].keys_FN)}, 1);
    EXPECT_LE(relative(asked[i].asked_DN, expected), 1e-13);
    EXPECT_EQ(asked[i].edits[0], (std::pair<size_t, std::vector<int64_t>>{0, {0}}));
    EXPECT_EQ(asked[i].edits[3], (std::pair<size_t, std::vector<int64_t>>{1, {1}}));
  }
}

/// Several passes over a layer, each with other keys: the last one's counts, and what those before it did.
TEST_F(MergeTest, AsksOfPassesWhatTheLastAsked) {
  const Solve solve = ridge(statistics, 0.5);
  const Asked pass1 = some_asked(kDown1, singles(3));
  Asked pass2 = some_asked(kDown1, {{0}, {2}});
  EditedBatch batch;
  put_change(batch, pass1, solve, 3, {});
  put_change(batch, pass2, solve, 3, {});
  EditHistory history = fresh();
  history.add(entry_of(3, 2), batch, tiny.config);
  const std::vector<AskedKeys> asked = asked_in_all(history);
  ASSERT_EQ(asked.size(), 1u);
  const Tensor before = to_dense(batch.changes[0].deltas[0]);
  std::map<int64_t, Tensor> keys, values;
  for (size_t n = 0; n < 3; ++n) {
    keys[asked[0].edits[n].second[0]] = asked[0].keys_FN.select(1, static_cast<int64_t>(n));
    values[asked[0].edits[n].second[0]] = asked[0].asked_DN.select(1, static_cast<int64_t>(n));
  }
  EXPECT_TRUE(keys.at(1).equal(pass1.keys_FN.select(1, 1)));
  EXPECT_TRUE(values.at(1).equal(pass1.residuals_DN.select(1, 1)));
  for (const int64_t n : {0, 1}) {
    const Tensor key = pass2.keys_FN.select(1, n);
    EXPECT_TRUE(keys.at(2 * n).equal(key));
    EXPECT_LE(relative(values.at(2 * n), pass2.residuals_DN.select(1, n) + before.matmul(key)), 1e-13);
  }
}

TEST_F(MergeTest, AddingPutsChangesSideBySide) {
  const Solve solve = ridge(statistics, 0.5);
  EditHistory one = fresh(), other = fresh();
  put(one, "a", some(2), solve, /*keeps_history=*/true);
  put(one, "b", some(3), solve, /*keeps_history=*/true);
  put(other, "c", some(2), solve, /*keeps_history=*/true);
  put(other, "d", some(1), solve, /*keeps_history=*/true);
  const MergedHistory merged = add_histories(HistoryList{&one, &other}, tiny.config);
  ASSERT_EQ(merged.history.batches().size(), 4u);
  for (const WeightId& id : {kDown1, kDown2})
    EXPECT_LE(
        relative(dense_of(merged.history.changes(), id), dense_of(one.changes(), id) + dense_of(other.changes(), id)),
        1e-14);
  const EditorState state = merged.history.state({});
  EXPECT_EQ(state.edits, 8);
  EXPECT_TRUE(columns_of(state, "keys.1")
                  .equal(torch::cat({columns_of(one.state({}), "keys.1"), columns_of(other.state({}), "keys.1")}, 1)));
  EXPECT_NE(merged.approximation, "");
  EXPECT_EQ(merged.history.journal().settings().size(), 1u);
  const TempDir folder;
  merged.history.write(folder.path(), tiny.config);
  EXPECT_EQ(EditHistory::load(folder.path(), tiny.config).journal().requests().size(), 8u);
}

TEST_F(MergeTest, OfSeveralMethodsKeepsTheFirstsState) {
  const Solve solve = ridge(statistics, 0.5);
  EditHistory one = fresh(), other = fresh("alphaedit");
  put(one, "a", some(2), solve, /*keeps_history=*/true);
  put(other, "c", some(2), solve, /*keeps_history=*/true);
  const MergedHistory merged = add_histories(HistoryList{&one, &other}, tiny.config);
  EXPECT_TRUE(columns_of(merged.history.state({}), "keys.1").equal(columns_of(one.state({}), "keys.1")));
  EXPECT_EQ(merged.history.journal().batches()[1].setting, 1u);
  EXPECT_NE(merged.approximation.find("several methods"), std::string::npos);
}

TEST_F(MergeTest, RefusesWhatDoesNotBelongTogether) {
  const Solve solve = ridge(statistics, 0.5);
  EditHistory one = fresh(), same = fresh(), finished = fresh(), dense = fresh();
  put(one, "a", some(2), solve);
  put(same, "a", some(1), solve);
  put(finished, "f", some(1), solve);
  finished.set_finish({{kDown1, {DenseDelta{random_f64(kOutputs, kInputs)}}}}, tiny.config);
  EditedBatch batch;
  batch.changes = {{kDown1, {DenseDelta{random_f64(kOutputs, kInputs)}}}};
  BatchEntry entry = history_entry({"d"});
  entry.columns.clear();
  dense.add(entry, batch, tiny.config);
  const EditHistory other_base({.weights = "bb"});
  const auto refusal = [&](const HistoryList& histories) {
    try {
      check_mergeable(histories);
      return std::string("none");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refusal({&one, &dense}), "none");
  EXPECT_NE(refusal({&one, &same}).find("edit a0: it stands in history 1 and in history 2"), std::string::npos);
  EXPECT_NE(refusal({&one, &finished}).find("after the last batch"), std::string::npos);
  EXPECT_NE(refusal({&one, &other_base}).find("weights: expected aa, got bb"), std::string::npos);
  EXPECT_NE(refusal({}), "none");
  EXPECT_THROW(solve_jointly(HistoryList{&one, &dense}, jointly(solve)), ConfigError);
  JointOptions options = jointly(solve);
  options.drop = {"x"};
  EXPECT_THROW(solve_jointly(HistoryList{&one}, options), ConfigError);
  options.drop = {"a0", "a1"};
  EXPECT_THROW(solve_jointly(HistoryList{&one}, options), ConfigError);
}

TEST_F(MergeTest, MeasuresWhatHistoriesDoToEachOther) {
  const Solve solve = ridge(statistics, 0.5);
  const std::vector<Asked> a = some(3), b = some(2);
  EditHistory one = fresh(), other = fresh();
  put(one, "a", a, solve);
  put(other, "b", b, solve);
  const std::vector<Interference> found = interference(HistoryList{&one, &other});
  ASSERT_EQ(found.size(), 5u);
  for (const Interference& each : found) {
    const bool is_a = each.history == 0;
    EXPECT_EQ(each.id, cat(is_a ? "a" : "b", each.edit));
    double largest = 0;
    for (size_t i = 0; i < 2; ++i) {
      const Asked& asked = is_a ? a[i] : b[i];
      const auto n = static_cast<int64_t>(each.edit);
      const Tensor moved = dense_of((is_a ? other : one).changes(), asked.id).matmul(asked.keys_FN.select(1, n));
      const double share = (moved.norm() / asked.residuals_DN.select(1, n).norm()).item<double>();
      largest = std::max(largest, share);
    }
    EXPECT_NEAR(each.largest, largest, 1e-12);
  }
}

/// Keys that are orthogonal in C^-1's metric do nothing to each other, and adding is the joint solve.
TEST_F(MergeTest, OrthogonalKeysDoNotInterfere) {
  const Solve solve = ridge(statistics, 0.5);
  const Tensor directions_FN = std::get<0>(at::linalg_qr(random_f64(kInputs, 7)));
  const auto keys = [&](int64_t begin, int64_t n) {
    return statistics.lower_FF.matmul(directions_FN.narrow(1, begin, n) * 3);
  };
  Asked a = some_asked(kDown1, singles(4)), b = some_asked(kDown1, singles(3));
  a.keys_FN = keys(0, 4);
  b.keys_FN = keys(4, 3);
  EditHistory one = fresh(), other = fresh();
  put(one, "a", {a}, solve);
  put(other, "b", {b}, solve);
  const HistoryList histories{&one, &other};
  for (const Interference& each : interference(histories)) EXPECT_LT(each.largest, 1e-12);
  const JointBatch joint = solve_jointly(histories, jointly(solve));
  EXPECT_LE(relative(dense_of(joint.batch.changes, kDown1),
                     dense_of(add_histories(histories, tiny.config).history.changes(), kDown1)),
            1e-12);
}

/// Solves jointly for keys that are near each other: it keeps both parts better than adding does.
TEST_F(MergeTest, JointKeepsBothBetterThanAdding) {
  const Solve solve = ridge(statistics, 0.05);
  const Asked a = some_asked(kDown1, singles(6));
  Asked b = some_asked(kDown1, singles(6));
  b.keys_FN = a.keys_FN + 0.5 * b.keys_FN;
  EditHistory one = fresh(), other = fresh();
  put(one, "a", {a}, solve);
  put(other, "b", {b}, solve);
  const HistoryList histories{&one, &other};
  const Tensor added = dense_of(add_histories(histories, tiny.config).history.changes(), kDown1),
               joint = dense_of(solve_jointly(histories, jointly(solve)).batch.changes, kDown1);
  for (const Asked& part : {a, b})
    EXPECT_LT(relative(joint.matmul(part.keys_FN), part.residuals_DN),
              0.5 * relative(added.matmul(part.keys_FN), part.residuals_DN));
}

}  // namespace
}  // namespace lancet
