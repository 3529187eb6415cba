// Edits taken out of whole histories: of streams whose later batches are solved with the keys of earlier ones.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/editor_parts/kept_texts.h"
#include "solved_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;

/// A batch of a stream as it was asked for.
struct AskedBatch {
  std::vector<std::string> ids = {};
  std::vector<Asked> asked = {};
  std::map<int64_t, Tensor> history_FN = {};  ///< each layer's column for each edit, measured after the batch
};

AskedBatch asked_batch(std::vector<std::string> ids) {
  AskedBatch batch{.ids = std::move(ids)};
  const auto n = static_cast<int64_t>(batch.ids.size());
  for (const WeightId& id : {kDown1, kDown2}) {
    batch.asked.push_back(some_asked(id, singles(n)));
    batch.history_FN[id.layer] = batch.asked.back().keys_FN + 0.01 * random_f64(kInputs, n);
  }
  return batch;
}

AskedBatch without(const AskedBatch& batch, const std::set<std::string>& ids) {
  AskedBatch fewer;
  std::set<int64_t> places;
  std::vector<int64_t> kept;
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    if (ids.contains(batch.ids[i])) {
      places.insert(place);
    } else {
      fewer.ids.push_back(batch.ids[i]);
      kept.push_back(place);
    }
  }
  for (const Asked& asked : batch.asked) fewer.asked.push_back(lancet::testing::without(asked, places));
  for (const auto& [layer, columns] : batch.history_FN)
    fewer.history_FN[layer] = columns.index_select(1, torch::tensor(kept, torch::kLong));
  return fewer;
}

struct DowndateHistory : public ::testing::Test {
  /// A stream of these batches; its method keeps keys where `keeps_history`, and chose a number at its first batch.
  EditHistory stream(const std::vector<AskedBatch>& all, const Solve& solve, bool keeps_history = true) const {
    EditHistory history({});
    history.journal().add_setting({.method = "memit"});
    EditorState state;
    for (const AskedBatch& asked : all) {
      if (asked.ids.empty()) continue;
      const auto n = static_cast<int64_t>(asked.ids.size());
      const EditorState before = state;
      EditedBatch batch;
      for (const Asked& one : asked.asked)
        put_change(batch, one, solve, n, columns_of(state, cat("keys.", one.id.layer)));
      if (keeps_history)
        for (const auto& [layer, columns] : asked.history_FN) append_columns(state, cat("keys.", layer), columns);
      state.tensors.emplace("auto.covariance_weight.1", torch::tensor(2.5, torch::kDouble));
      state.edits += n;
      batch.state = step_between(before, state);
      BatchEntry entry = history_entry(asked.ids);
      for (size_t i = 0; i < asked.ids.size(); ++i)
        entry.edits[i].prompt_ids = {1, 100 + static_cast<int64_t>(history.journal().requests().size() + i), 5};
      entry.weights = {{"w", "h"}};
      history.add(std::move(entry), std::move(batch), tiny.config);
    }
    return history;
  }

  /// `history` with what the downdate gives in place of what was there.
  EditHistory put(EditHistory history, const Downdated& downdated, const std::set<std::string>& ids) const {
    history.undo({.mode = UndoMode::kDowndate, .keeps = downdated.keeps, .edits = {ids.begin(), ids.end()}});
    for (size_t i = 0; i < downdated.entries.size(); ++i)
      history.add(downdated.entries[i], downdated.batches[i], tiny.config);
    return history;
  }

  void expect_same(const EditHistory& got, const EditHistory& expected, const std::string& what) const {
    ASSERT_EQ(got.batches().size(), expected.batches().size()) << what;
    for (size_t i = 0; i < got.batches().size(); ++i) {
      expect_close(got.batches()[i], expected.batches()[i], cat(what, ", batch ", i));
      EXPECT_EQ(got.journal().batches()[i].columns, expected.journal().batches()[i].columns);
    }
    const EditorState one = got.state({}), other = expected.state({});
    EXPECT_EQ(one.edits, other.edits);
    ASSERT_EQ(one.tensors.size(), other.tensors.size()) << what;
    for (const auto& [name, tensor] : other.tensors) EXPECT_TRUE(one.tensors.at(name).equal(tensor)) << what << name;
  }

  const Statistics statistics{9};
  const std::vector<AskedBatch> batches{asked_batch({"a", "b", "c"}), asked_batch({"d"}), asked_batch({"e", "f"}),
                                        asked_batch({"g", "h"})};
  TinyModel tiny;
};

TEST_F(DowndateHistory, IsTheStreamWithoutTheEdits) {
  for (const Solve& solve : {ridge(statistics, 0.3), null_space(statistics, 1)})
    for (const std::set<std::string>& ids : std::vector<std::set<std::string>>{
             {"b"}, {"a", "b", "c"}, {"d"}, {"h"}, {"g", "h"}, {"a", "d", "e", "h"}, {"a", "b", "c", "d", "e", "f"}}) {
      const EditHistory history = stream(batches, solve);
      std::vector<AskedBatch> fewer;
      for (const AskedBatch& batch : batches) fewer.push_back(without(batch, ids));
      const Downdated downdated = without_edits(history, ids, solve.help());
      expect_same(put(history, downdated, ids), stream(fewer, solve), cat(solve.name, ", without ", *ids.begin()));
      EXPECT_LE(downdated.error, kClose);
      for (const BatchEntry& entry : downdated.entries) EXPECT_TRUE(entry.weights.empty() && entry.changes.empty());
    }
}

TEST_F(DowndateHistory, OfAMethodWithoutOneNeedsNoStatistics) {
  const Solve solve = equality(statistics, 1, 0.1);
  const std::set<std::string> ids{"b", "d", "g"};
  const EditHistory history = stream(batches, solve, /*keeps_history=*/false);
  std::vector<AskedBatch> fewer;
  for (const AskedBatch& batch : batches) fewer.push_back(without(batch, ids));
  const Downdated downdated = without_edits(history, ids, {});
  EXPECT_EQ(downdated.keeps, 0u);
  expect_same(put(history, downdated, ids), stream(fewer, solve, /*keeps_history=*/false), "equality");
}

TEST_F(DowndateHistory, SaysWhatItGivesUp) {
  const Solve solve = ridge(statistics, 0.3);
  const EditHistory history = stream(batches, solve);
  const auto approximation = [&](const std::set<std::string>& ids) {
    return without_edits(history, ids, solve.help()).approximation;
  };
  EXPECT_EQ(approximation({"g", "h"}), "");  // the last batch, left out
  EXPECT_NE(approximation({"g"}).find("later layers and passes"), std::string::npos);
  EXPECT_EQ(approximation({"g"}).find("later batches"), std::string::npos);
  EXPECT_NE(approximation({"d"}).find("later batches"), std::string::npos);
  EXPECT_NE(approximation({"a"}).find("measured once"), std::string::npos);
  EXPECT_NE(approximation({"a", "b", "c"}).find("measured once"), std::string::npos);
  EXPECT_EQ(approximation({"e"}).find("measured once"), std::string::npos);
}

TEST_F(DowndateHistory, RefusesWhatItCannotDo) {
  const Solve solve = ridge(statistics, 0.3);
  const EditHistory history = stream(batches, solve);
  const auto refusal = [&](const EditHistory& of, const std::set<std::string>& ids, const DowndateHelp& help) {
    try {
      without_edits(of, ids, help);
      return std::string("none");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_NE(refusal(history, {"x"}, {}).find("edit x: none of this id stands"), std::string::npos);
  EXPECT_NE(refusal(history, {"a"}, {}).find("--mode replay"), std::string::npos);  // no statistics
  EXPECT_EQ(refusal(history, {"g"}, {}), "none");                                   // no batch after
  // more than 2 F columns: replaced by F
  std::vector<AskedBatch> many = batches;
  many.push_back(asked_batch({}));
  for (int64_t i = 0; i < 2 * kInputs; ++i) many.back().ids.push_back(cat("m", i));
  many.back() = asked_batch(many.back().ids);
  const EditHistory compressed = stream(many, solve);
  EXPECT_NE(refusal(compressed, {"a"}, solve.help()).find("compressed"), std::string::npos);
  EXPECT_NE(refusal(compressed, {"m1"}, solve.help()).find("compressed"), std::string::npos);
}

TEST_F(DowndateHistory, LeavesBatchesOutOfMethodsWithoutSystems) {
  EditHistory history({});
  history.journal().add_setting({.method = "ft"});
  std::vector<EditedBatch> dense;
  for (const char* id : {"a", "b", "c"}) {
    EditedBatch batch;
    batch.changes = {{kDown1, {DenseDelta{random_f64(kOutputs, kInputs)}}}};
    batch.state.edits = 1;
    dense.push_back(batch);
    BatchEntry entry = history_entry({id});
    entry.columns.clear();
    history.add(entry, batch, tiny.config);
  }
  const Downdated downdated = without_edits(history, {"b"}, {});
  EXPECT_EQ(downdated.keeps, 1u);
  ASSERT_EQ(downdated.batches.size(), 1u);
  expect_same_batch(downdated.batches[0], dense[2]);
  EXPECT_NE(downdated.approximation.find("later batches"), std::string::npos);
  // but not of one that goes by running numbers
  EditHistory running({});
  running.journal().add_setting({.method = "ultraedit"});
  for (const char* id : {"a", "b"}) {
    EditedBatch batch = dense[0];
    batch.state.replaced["down.mean"] = random_f64(3, 1);
    BatchEntry entry = history_entry({id});
    entry.columns.clear();
    running.add(entry, batch, tiny.config);
  }
  EXPECT_THROW(without_edits(running, {"a"}, {}), ConfigError);
  EXPECT_EQ(without_edits(running, {"b"}, {}).keeps, 1u);
}

/// What batches were trained on, or revisit, leaves the state with them.
TEST_F(DowndateHistory, TakesColumnsOfWholeBatchesOutOfTheState) {
  EditHistory history({});
  history.journal().add_setting({.method = "ft-m"});
  std::map<std::string, Tensor> columns;
  EditorState state;
  for (const char* id : {"a", "b", "c"}) {
    const EditorState before = state;
    columns[id] = random_f64(kInputs, 2);
    append_columns(state, "curvature.keys.1", columns[id]);
    keep_texts(state, std::vector<TokenizedRequest>{{.id = id, .prompt = {1, id[0]}, .target = {7}}});
    ++state.edits;
    EditedBatch batch{.changes = {{kDown1, {DenseDelta{random_f64(kOutputs, kInputs)}}}}};
    batch.state = step_between(before, state);
    BatchEntry entry = history_entry({id});
    entry.columns.clear();
    history.add(entry, batch, tiny.config);
  }
  for (const std::string gone : {"a", "b"}) {
    const EditorState left = put(history, without_edits(history, {gone}, {}), {gone}).state({});
    const std::string first = gone == "a" ? "b" : "a";
    EXPECT_TRUE(columns_of(left, "curvature.keys.1").equal(torch::cat({columns[first], columns["c"]}, 1))) << gone;
    const std::vector<TokenizedRequest> texts = kept_texts(left);
    ASSERT_EQ(texts.size(), 2u) << gone;
    EXPECT_EQ(texts[0].prompt, (std::vector<TokenId>{1, first[0]}));
    EXPECT_EQ(texts[1].prompt, (std::vector<TokenId>{1, 'c'}));
    EXPECT_EQ(texts[1].target, std::vector<TokenId>{7});
  }
}

/// Whose keys a batch put into the history goes by its rounds where several edits have equal keys.
TEST_F(DowndateHistory, KnowsWhoseKeysAreKept) {
  const Solve solve = ridge(statistics, 0.3);
  using Edits = std::vector<std::vector<int64_t>>;
  const auto kept = [&](const std::vector<Edits>& changes, int64_t n_columns, const std::set<std::string>& ids) {
    EditHistory history({});
    history.journal().add_setting({.method = "memit"});
    EditedBatch batch;
    for (const Edits& edits : changes) put_change(batch, some_asked(kDown1, edits), solve, 4, {});
    batch.state.replaced["keys.1"] = torch::arange(n_columns, torch::kDouble).expand({kInputs, n_columns}).contiguous();
    BatchEntry entry = entry_of(4, static_cast<int64_t>(changes.size()));
    entry.edits[2].prompt_ids = entry.edits[0].prompt_ids;  // one key
    history.add(entry, batch, tiny.config);
    const Tensor columns = without_edits(history, ids, {}).batches.at(0).state.replaced.at("keys.1");
    return columns.select(0, 0).contiguous();
  };
  const auto expect_kept = [&](const Tensor& got, const std::vector<double>& expected) {
    EXPECT_TRUE(got.equal(torch::tensor(expected, torch::kDouble))) << got;
  };
  const std::vector<Edits> split{{{0}, {1}, {3}}, {{2}}}, mean{{{0, 2}, {1}, {3}}}, together{{{0}, {1}, {2}, {3}}};
  expect_kept(kept(split, 4, {"e3"}), {0, 1, 3});
  expect_kept(kept(split, 4, {"e2"}), {0, 1, 2});
  expect_kept(kept(mean, 3, {"e1"}), {0, 2});
  expect_kept(kept(mean, 3, {"e0", "e2"}), {1, 2});
  expect_kept(kept(together, 4, {"e2"}), {0, 1, 3});
  expect_kept(kept({{{0}, {1}, {2}, {3}}, {{1}, {3}}}, 4, {"e1"}), {0, 2, 3});  // a second pass over some
  expect_kept(kept({{{0}, {3}, {2}}}, 3, {"e3"}), {0, 2});                      // edit 1 was left out
  // which came up in a later pass first is not certain
  EXPECT_THROW(kept({{{0}, {1}}, {{3}}, {{2}}}, 4, {"e1"}), ConfigError);
  EXPECT_THROW(kept({{{0}, {1}}, {{2}}}, 4, {"e1"}), ConfigError);
}

/// Inputs that a method leaves out of its solve (NSE) stay out when it is solved again.
TEST_F(DowndateHistory, SolvesTheSameInputsAgain) {
  const Tensor some_S = torch::tensor({1, 4, 5, 20, 33}, torch::kLong);
  Solve some = ridge(statistics, 0.3);
  some.solve = [&](const Tensor& keys, const Tensor& residuals, const Tensor& history) {
    const Tensor c_SS = statistics.covariance_FF.index_select(0, some_S).index_select(1, some_S);
    const Tensor history_SM = history.defined() ? history.index_select(0, some_S) : Tensor();
    LowRankDelta delta =
        solve_ridge({at::linalg_cholesky(c_SS), 0.3, keys.index_select(0, some_S), history_SM, residuals});
    delta.right_RI = torch::zeros({keys.size(1), kInputs}, torch::kDouble).index_copy(1, some_S, delta.right_RI);
    return delta;
  };
  const std::set<std::string> ids{"a", "f"};
  std::vector<AskedBatch> fewer;
  for (const AskedBatch& batch : batches) fewer.push_back(without(batch, ids));
  const EditHistory history = stream(batches, some);
  const Downdated downdated = without_edits(history, ids, some.help());
  expect_same(put(history, downdated, ids), stream(fewer, some), "some inputs");
  EXPECT_NE(downdated.approximation.find("which inputs change"), std::string::npos);
}

}  // namespace
}  // namespace lancet
