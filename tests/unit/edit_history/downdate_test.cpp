#include "lancet/edit_history/downdate.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "solved_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;

/// Compares with the solves without the edits, of two layers in two passes each.
TEST(Downdate, IsTheSolveWithoutTheEdits) {
  const Statistics statistics(3);
  constexpr int64_t kEdits = 7;
  for (const Solve& solve : all_solves(statistics))
    for (const std::set<int64_t>& places :
         std::vector<std::set<int64_t>>{{0}, {6}, {2, 3}, {0, 1, 2, 4, 5, 6}, {1, 3, 5}}) {
      torch::manual_seed(11);
      EditedBatch batch, expected;
      for (const WeightId& id : {kDown1, kDown2, kDown1, kDown2}) {
        const Asked asked = some_asked(id, singles(kEdits));
        put_change(batch, asked, solve, kEdits, {});
        put_change(expected, without(asked, places), solve, kEdits - static_cast<int64_t>(places.size()), {});
      }
      const ReducedBatch reduced = without_edits(batch, entry_of(kEdits, 2), places);
      expect_close(reduced.batch, expected, solve.name);
      EXPECT_LE(reduced.error, kClose) << solve.name;
    }
}

TEST(Downdate, HoldsWithAHistoryThatStays) {
  const Statistics statistics(4);
  const Tensor history = random_f64(kInputs, 9);
  for (const Solve& solve : {ridge(statistics, 0.3), null_space(statistics, 1)}) {
    const Asked asked = some_asked(kDown1, singles(5));
    EditedBatch batch, expected;
    put_change(batch, asked, solve, 5, history);
    put_change(expected, without(asked, {1, 4}), solve, 3, history);
    expect_close(without_edits(batch, entry_of(5, 1), {1, 4}).batch, expected, solve.name);
  }
}

/// One after another is all at once, since what is left is a system again.
TEST(Downdate, GoesOnFromWhatItLeft) {
  const Statistics statistics(5);
  for (const Solve& solve : all_solves(statistics)) {
    const Asked asked = some_asked(kDown1, singles(8));
    EditedBatch batch, expected;
    put_change(batch, asked, solve, 8, {});
    put_change(expected, without(asked, {1, 2, 7}), solve, 5, {});
    BatchEntry entry = entry_of(8, 1);
    for (const int64_t place : {7, 2, 1}) {
      batch = without_edits(batch, entry, {place}).batch;
      entry = without_edits(entry, {place}, {});
    }
    expect_close(batch, expected, solve.name);
    EXPECT_EQ(entry.edits.size(), 5u);
  }
}

TEST(Downdate, TakesSharedKeysTogetherAlone) {
  const Statistics statistics(6);
  // keys of two and three edits; edit 4 has none here
  const std::vector<std::vector<int64_t>> edits{{0}, {1, 3}, {2, 5, 6}};
  for (const Solve& solve : all_solves(statistics)) {
    const Asked asked = some_asked(kDown1, edits);
    EditedBatch batch;
    put_change(batch, asked, solve, 7, {});
    const BatchEntry entry = entry_of(7, 1);
    for (const std::set<int64_t>& places : std::vector<std::set<int64_t>>{{1, 3}, {4}, {0, 4}, {2, 5, 6}, {0, 1, 3}}) {
      EditedBatch expected;
      put_change(expected, without(asked, places), solve, 7 - static_cast<int64_t>(places.size()), {});
      expect_close(without_edits(batch, entry, places).batch, expected, solve.name);
    }
    for (const std::set<int64_t>& places : std::vector<std::set<int64_t>>{{1}, {0, 3}, {2, 5}})
      EXPECT_THROW(without_edits(batch, entry, places), ConfigError);
  }
}

TEST(Downdate, OfTheEntryRenumbersColumns) {
  BatchEntry entry = entry_of(4, 2);
  entry.weights = {{"w", "h"}};
  entry.changes = entry.solved = "d";
  entry.report = {{"all", 4}};
  const BatchEntry fewer = without_edits(entry, {0, 2}, [](const BatchEntry& batch, const auto& kept) {
    EXPECT_EQ(kept, (std::vector<int64_t>{1, 3}));
    return nlohmann::ordered_json{{"of", batch.report.at("all")}};
  });
  ASSERT_EQ(fewer.edits.size(), 2u);
  EXPECT_EQ(fewer.edits[0].request.id, "e1");
  EXPECT_EQ(fewer.edits[1].request.id, "e3");
  EXPECT_EQ(fewer.columns, (std::vector<int64_t>{0, 1, 0, 1}));
  EXPECT_TRUE(fewer.changes.empty() && fewer.solved.empty() && fewer.weights.empty());
  EXPECT_EQ(fewer.report.at("of"), 4);
  EXPECT_TRUE(without_edits(entry, {0}, {}).report.is_null());
}

TEST(Downdate, RefusesWhatNothingIsStoredOf) {
  const Statistics statistics(7);
  const Solve solve = ridge(statistics, 1);
  EditedBatch batch;
  put_change(batch, some_asked(kDown1, singles(3)), solve, 3, {});
  const BatchEntry entry = entry_of(3, 1);
  const auto refuses = [&](const char* what, EditedBatch other, const BatchEntry& of) {
    try {
      without_edits(other, of, {1});
      ADD_FAILURE() << what;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("--mode replay"), std::string::npos) << what << ": " << error.what();
    }
  };
  EditedBatch other = batch;
  other.systems.clear();
  refuses("no systems", other, entry);
  other = batch;
  other.changes[0].deltas[0] = DenseDelta{random_f64(kOutputs, kInputs)};
  refuses("dense", other, entry);
  BatchEntry without_columns = entry;
  without_columns.columns.clear();
  refuses("no columns", batch, without_columns);
  other = batch;
  auto& delta = std::get<LowRankDelta>(other.changes[0].deltas[0]);
  delta.left_OR = delta.left_OR * 0.5;
  refuses("filtered", other, entry);
  EXPECT_THROW(without_edits(batch, entry_of(3, 2), {1}), CheckpointError);
  EXPECT_THROW(without_edits(batch, entry_of(2, 1), {1}), CheckpointError);
  EXPECT_THROW(without_edits(batch, entry, {3}), std::logic_error);
  EXPECT_THROW(without_edits(batch, entry, {0, 1, 2}), std::logic_error);
}

/// Keys that all but depend on one another: what is given back is as exact as it says, or nothing is.
TEST(Downdate, IsAsExactAsItSaysOrRefused) {
  const Statistics statistics(8);
  int n_refused = 0, n_taken = 0;
  for (const double gap : {1e-1, 1e-3, 1e-5, 1e-7, 1e-9})
    for (const double size : {1.0, 1e3, 1e6})
      for (const Solve& solve : {ridge(statistics, 1), equality(statistics, 1, 0), equality(statistics, 1, 1e-6)}) {
        torch::manual_seed(1);
        Asked asked = some_asked(kDown1, singles(4));
        asked.keys_FN.select(1, 2).copy_(asked.keys_FN.select(1, 0) + asked.keys_FN.select(1, 1) +
                                         gap * random_f64(kInputs, 1).squeeze(1));
        asked.keys_FN *= size;
        EditedBatch batch;
        try {
          put_change(batch, asked, solve, 4, {});
        } catch (const NumericError&) {
          continue;
        }
        EditedBatch expected;
        put_change(expected, without(asked, {2}), solve, 3, {});
        try {
          const ReducedBatch reduced = without_edits(batch, entry_of(4, 1), {2});
          const double off = relative(std::get<LowRankDelta>(reduced.batch.changes[0].deltas[0]).right_RI,
                                      std::get<LowRankDelta>(expected.changes[0].deltas[0]).right_RI);
          EXPECT_LE(off, 10 * reduced.error) << solve.name << ", gap " << gap << ", size " << size;
          ++n_taken;
        } catch (const NumericError& error) {
          EXPECT_NE(std::string(error.what()).find("--mode replay"), std::string::npos) << error.what();
          ++n_refused;
        }
      }
  EXPECT_GT(n_taken, 10);
  EXPECT_GT(n_refused, 0);
}

}  // namespace
}  // namespace lancet
