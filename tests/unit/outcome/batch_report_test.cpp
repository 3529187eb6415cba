#include "lancet/outcome/batch_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lancet/core/error.h"
#include "lancet/outcome/edit_report.h"

namespace lancet {
namespace {

BatchReport some_batch() {
  BatchReport batch;
  batch.requests = {4, 1};
  batch.seconds = 0.1;
  batch.outcome.requests = {{.steps = 3,
                             .initial_loss = 1.0 / 3,
                             .final_loss = 0.1,
                             .losses = {1.0F / 3, 0.2F, 0.1F},
                             .realised = 1.0 / 7,
                             .realised_by_layer = {{0, 0.1}, {3, 2.0 / 3}}},
                            {.steps = 0, .skipped = "too \"long\""}};
  batch.outcome.batching = {2, 1, 0, 1};
  batch.outcome.columns = {1, 0};
  batch.outcome.shared_keys = {{"share a key", {{0, 1}}}};
  batch.outcome.warnings = {"so it is"};
  batch.right_after = Tallies{{"efficacy_prob", {1, 2}}};
  batch.growth = {{"model.layers.1.mlp.down_proj.weight", 0.12345678901234567}};
  return batch;
}

TEST(BatchRecord, ComesBackExactly) {
  const BatchReport batch = some_batch(), back = from_record(to_record(batch), 2);
  EXPECT_EQ(back.seconds, batch.seconds);
  ASSERT_EQ(back.outcome.requests.size(), 2u);
  EXPECT_EQ(back.outcome.requests[0].steps, 3);
  EXPECT_EQ(back.outcome.requests[0].initial_loss, batch.outcome.requests[0].initial_loss);
  EXPECT_EQ(back.outcome.requests[0].delta_norm, std::nullopt);
  EXPECT_EQ(back.outcome.requests[0].losses, batch.outcome.requests[0].losses);
  EXPECT_EQ(back.outcome.requests[1].skipped, "too \"long\"");
  EXPECT_EQ(back.outcome.requests[0].realised, 1.0 / 7);
  EXPECT_EQ(back.outcome.requests[1].realised, std::nullopt);
  ASSERT_EQ(back.outcome.requests[0].realised_by_layer.size(), 2u);
  EXPECT_EQ(back.outcome.requests[0].realised_by_layer[1].layer, 3);
  EXPECT_EQ(back.outcome.requests[0].realised_by_layer[1].share, 2.0 / 3);
  ASSERT_EQ(back.outcome.shared_keys.size(), 1u);
  EXPECT_EQ(back.outcome.shared_keys[0].effect, "share a key");
  EXPECT_EQ(back.outcome.shared_keys[0].groups, batch.outcome.shared_keys[0].groups);
  EXPECT_EQ(back.outcome.batching.largest, 1);
  EXPECT_EQ(back.outcome.columns, batch.outcome.columns);
  EXPECT_EQ(back.outcome.warnings, batch.outcome.warnings);
  EXPECT_EQ(back.right_after->at("efficacy_prob").count, 2);
  EXPECT_FALSE(back.first_batch.has_value());
  EXPECT_EQ(back.growth, batch.growth);
}

TEST(BatchRecord, OfNumbersThatAreNotFiniteIsReadBack) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  BatchReport batch = some_batch();
  batch.outcome.requests[0].realised_by_layer[0].share = kInfinite;
  batch.outcome.chosen = {{"lambda", 1, kInfinite}};
  batch.right_after = Tallies{{"perplexity", {kInfinite, 2}}};
  batch.growth[0].second = -kInfinite;
  const BatchReport back = from_record(to_record(batch), 2);
  EXPECT_TRUE(std::isnan(back.outcome.requests[0].realised_by_layer[0].share));
  EXPECT_TRUE(std::isnan(back.outcome.chosen[0].value));
  EXPECT_TRUE(std::isnan(back.right_after->at("perplexity").sum));
  EXPECT_TRUE(std::isnan(back.growth[0].second));
  EXPECT_EQ(to_record(back), to_record(batch));
}

TEST(BatchRecord, RefusesWhatNoBatchHas) {
  const std::string deep = std::string(1'000'000, '[');
  for (const std::string& record : {std::string("{}"), std::string("not JSON"), std::string("[]"), deep})
    EXPECT_THROW(from_record(record, 2), ConfigError) << record.substr(0, 20);
  const auto whole = nlohmann::json::parse(to_record(some_batch()));
  EXPECT_THROW(from_record(whole.dump(), 3), ConfigError) << "another number of requests";
  using Pointer = nlohmann::json::json_pointer;
  const std::vector<std::pair<const char*, nlohmann::json>> cases{{"/outcome/columns/0", 1'000'000'000},
                                                                  {"/outcome/columns/0", -1},
                                                                  {"/outcome/columns/0", 0.5},
                                                                  {"/outcome/columns", nullptr},
                                                                  {"/outcome/requests", nullptr},
                                                                  {"/outcome/requests/0", nullptr},
                                                                  {"/outcome/requests/0/0", true},
                                                                  {"/outcome/requests/0/5", "0.3"},
                                                                  {"/outcome/shared_keys/0/1/0/1", 2},
                                                                  {"/outcome/values", {1, 2, 3}},
                                                                  {"/outcome/values/0", int64_t{1} << 62},
                                                                  {"/outcome/requests/0/0", -1},
                                                                  {"/seconds", nullptr},
                                                                  {"/outcome/chosen", 1},
                                                                  {"/right_after", {1}},
                                                                  {"/right_after/efficacy_prob/1", -1},
                                                                  {"/seconds", "long"},
                                                                  {"/text_kl", "0.5"},
                                                                  {"/growth", {{"w"}}}};
  for (const auto& [place, value] : cases) {
    nlohmann::json changed = whole;
    changed[Pointer(place)] = value;
    EXPECT_THROW(from_record(changed.dump(), 2), ConfigError) << place << ": " << value;
  }
}

TEST(BatchRecord, OutcomesAreMergedByTheJobsRequests) {
  BatchReport second = some_batch();
  second.requests = {0, 3};
  second.outcome.requests[0].steps = 8;
  const EditOutcome all = merged_outcome({some_batch(), second}, 5);
  EXPECT_EQ(all.columns, (std::vector<int64_t>{1, 4, 3, 0}));
  ASSERT_EQ(all.requests.size(), 5u);
  EXPECT_EQ(all.requests[4].steps, 3);
  EXPECT_EQ(all.requests[0].steps, 8);
  EXPECT_FALSE(all.requests[1].skipped.empty());
  EXPECT_EQ(all.requests[2].steps, 0);
  EXPECT_EQ(all.batching.batches, 4);
  EXPECT_EQ(all.batching.resumed, 2);
  EXPECT_EQ(all.warnings.size(), 1u) << "of every batch the same";
  ASSERT_EQ(all.shared_keys.size(), 1u) << "one effect";
  EXPECT_EQ(all.shared_keys[0].groups, (std::vector<std::vector<int64_t>>{{4, 1}, {0, 3}}));
}

TEST(EditReport, PoolsWhatEveryBatchMeasured) {
  EditReport report;
  report.batches.resize(2);
  report.batches[0].right_after = Tallies{{"efficacy_prob", {1, 2}}, {"generation_exact", {}}};
  report.batches[1].right_after = Tallies{{"efficacy_prob", {2, 2}}, {"generation_exact", {2, 2}}};
  report.after.totals = {{"efficacy_prob", {2, 4}}, {"generation_exact", {3, 4}}};
  EXPECT_EQ(report.right_after().at("efficacy_prob").mean(), 0.75);
  EXPECT_FALSE(report.right_after().at("generation_exact").mean()) << "texts are generated at the end alone";
  report.batches[0].right_after.reset();
  EXPECT_TRUE(report.right_after().empty());
}

}  // namespace
}  // namespace lancet
