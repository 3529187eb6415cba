#include "lancet/edit_history/conflicts.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <set>

#include "lancet/core/strings.h"
#include "lancet/requests/request.h"
#include "lancet/text/prompt.h"
#include "support/history_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;

/// The first two histories hold all edits by turns, in batches of 100.
struct ConflictsTest : public ::testing::Test {
  EditRecord fact(const std::string& subject, const std::string& prompt, const std::string& target,
                  const std::string& relation = "") {
    EditRecord edit;
    edit.request.id = cat("fact ", n_facts++);
    edit.request.subject = subject;
    edit.request.prompt = fill_prompt(prompt, subject, "test");
    edit.request.target = target;
    edit.request.relation = relation;
    const SubjectTokens tokens = find_subject(*tiny.tokenizer, edit.request.prompt);
    edit.prompt_ids = tokens.ids;
    edit.lookup = tokens.end - 1;
    return edit;
  }

  std::vector<EditHistory> histories_of(const std::vector<EditRecord>& edits) const {
    std::vector<EditHistory> histories(2, EditHistory({.weights = "aa"}));
    for (EditHistory& history : histories) history.journal().add_setting({});
    for (size_t h = 0; h < 2; ++h) {
      BatchEntry entry;
      for (size_t i = h; i < edits.size(); i += 2) {
        entry.edits.push_back(edits[i]);
        if (entry.edits.size() == 100 || i + 2 >= edits.size()) {
          histories[h].add(entry, {}, tiny.config);
          entry.edits.clear();
        }
      }
    }
    return histories;
  }

  static ConflictReport find(const std::vector<EditHistory>& histories, const ConflictOptions& options = {}) {
    std::vector<const EditHistory*> all;
    for (const EditHistory& history : histories) all.push_back(&history);
    return find_conflicts(all, options);
  }

  using Pairs = std::set<std::set<std::string>>;
  static Pairs pairs(const std::vector<Conflict>& conflicts, ConflictKind kind) {
    Pairs found;
    for (const Conflict& conflict : conflicts)
      if (conflict.kind == kind) {
        EXPECT_TRUE(found.insert({conflict.first.id, conflict.second.id}).second) << conflict.what;
      }
    return found;
  }

  TinyModel tiny;
  int n_facts = 0;
};

/// 20 of each kind among the demo's facts, whose own subjects are all different.
TEST_F(ConflictsTest, FindsWhatWasPlantedAndNothingElse) {
  const auto path = std::filesystem::path(LANCET_SOURCE_DIR) / "data" / "requests" / "demo.json";
  std::vector<EditRecord> edits;
  for (const EditRequest& request : load_request_file(path, {}).requests) {
    EditRecord edit;
    edit.request = request;
    const SubjectTokens tokens = find_subject(*tiny.tokenizer, request.prompt);
    edit.prompt_ids = tokens.ids;
    edit.lookup = tokens.end - 1;
    edits.push_back(edit);
  }
  ASSERT_GT(edits.size(), 500u);
  const ConflictReport own = find(histories_of(edits));
  for (const Conflict& conflict : own.conflicts) ADD_FAILURE() << name_of(conflict.kind) << ": " << conflict.what;
  EXPECT_TRUE(own.duplicates.empty());

  Pairs targets, duplicates, equal_keys, reversed;
  const std::vector<EditRecord> demo = edits;
  const auto plant = [&](Pairs& kind, const EditRecord& one, const EditRecord& other) {
    kind.insert({one.request.id, other.request.id});
    edits.push_back(other);
  };
  for (size_t i = 0; i < 20; ++i) {
    EditRecord other = demo[i];
    other.request.id = cat("target ", i);
    other.request.target = "Atlantis";
    plant(targets, demo[i], other);
    EditRecord same = demo[20 + i];
    same.request.id = cat("same ", i);
    same.request.target = cat("  ", same.request.target, "\t");
    same.request.subject += " ";
    plant(duplicates, demo[20 + i], same);
    // another relation after the same tokens
    EditRecord key = demo[40 + i];
    key.request.id = cat("key ", i);
    key.request.relation = "P0";
    key.request.prompt.text += " once again";
    key.request.target = "Lemuria";
    plant(equal_keys, demo[40 + i], key);
    // target and subject exchanged, under a relation of its own
    EditRecord one = fact(cat("Person ", i), "The spouse of {} is", cat("Partner ", i), "P26"),
               back = fact(cat("Partner ", i), "{} is married to", cat("Somebody else ", i), "P26");
    edits.push_back(one);
    plant(reversed, one, back);
  }
  const std::vector<EditHistory> histories = histories_of(edits);
  const ConflictReport report = find(histories);
  EXPECT_EQ(pairs(report.conflicts, ConflictKind::kTargets), targets);
  EXPECT_EQ(pairs(report.conflicts, ConflictKind::kEqualKeys), equal_keys);
  EXPECT_EQ(pairs(report.conflicts, ConflictKind::kReversed), reversed);
  EXPECT_EQ(pairs(report.duplicates, ConflictKind::kTargets), duplicates);
  EXPECT_EQ(report.conflicts.size(), 60u);
  EXPECT_TRUE(report.metrics.empty());
  for (const Conflict& conflict : report.conflicts)
    for (const EditPlace& place : {conflict.first, conflict.second}) {
      const BatchEntry& batch = histories[place.history].journal().batches()[place.batch];
      EXPECT_EQ(batch.edits[place.edit].request.id, place.id);
    }
}

TEST_F(ConflictsTest, ComparesTextsWithoutTheirWhiteSpace) {
  const auto kinds = [&](const EditRecord& one, const EditRecord& other) {
    std::string text;
    const ConflictReport report = find(histories_of({one, other}));
    for (const Conflict& conflict : report.conflicts) text += name_of(conflict.kind) + " ";
    for (size_t i = 0; i < report.duplicates.size(); ++i) text += "duplicate ";
    return text;
  };
  const EditRecord louvre = fact("Louvre", "The museum {} lies in", "Paris", "P276");
  EXPECT_EQ(kinds(louvre, fact("Louvre", "The museum  {} lies\nin", "Rome", "P1")), "targets ");
  EXPECT_EQ(kinds(louvre, fact("Louvre", "Where is {}? In", "Rome", "P276")), "targets ");
  EXPECT_EQ(kinds(louvre, fact("Louvre", "Where is {}? In", " Paris", "P276")), "duplicate ");
  EXPECT_EQ(kinds(louvre, fact("Louvre", "Where is {}? In", "Rome", "P1")), "");
  EXPECT_EQ(kinds(louvre, fact("Prado", "The museum {} lies in", "Madrid", "P276")), "");
  EditRecord alias = fact("Louvre", "The museum {} lies in", "City of Light", "P276");
  alias.request.target_aliases = {"Paris"};
  EXPECT_EQ(kinds(louvre, alias), "duplicate ");
  // one key
  EXPECT_EQ(kinds(louvre, fact("Louvre", "The museum {} was built by", "Lescot", "P84")), "equal_keys ");
  EXPECT_EQ(kinds(louvre, fact("Louvre", "The museum {} was seen in", "Paris", "P1")), "");
  // reversed
  const EditRecord capital = fact("France", "The capital of {} is", "Lyon", "P36");
  EXPECT_EQ(kinds(capital, fact("Lyon", "{} is the capital of", "Spain", "P1376")), "reversed ");
  EXPECT_EQ(kinds(capital, fact("Lyon", "{} is the capital of", "France", "P1376")), "");
  EXPECT_EQ(kinds(capital, fact("Lyon", "The capital of {} is", "France", "P36")), "reversed ");
  EXPECT_EQ(kinds(capital, fact("Lyon", "The capital of {} is", "Spain", "P36")), "");
  EXPECT_EQ(kinds(capital, fact("Paris", "{} is the capital of", "France", "P1376")), "reversed ");
  EXPECT_EQ(kinds(capital, fact("Paris", "{} is the capital of", "Texas", "P1376")), "");
  EXPECT_EQ(kinds(fact("Ann", "{} is the mother of", "Bob"), fact("Bob", "{} is the mother of", "Ann")), "reversed ");
  EXPECT_EQ(kinds(fact("Ann", "{} is the wife of", "Bob", "P26"), fact("Bob", "{} is married to", "Ann", "P26")), "");
}

struct NearKeysTest : public ConflictsTest {
  /// 200 edits with keys of both layers; key 2 i + 1 is key 2 i, in the metric's sense, for the first 20.
  std::vector<EditHistory> planted(const Tensor& lower_FF, bool has_same_residuals) {
    torch::manual_seed(3);
    std::vector<EditHistory> histories(1, EditHistory({}));
    histories[0].journal().add_setting({});
    BatchEntry entry;
    for (int64_t i = 0; i < 200; ++i) entry.edits.push_back(fact(cat("Name", i), "{} is", cat("Target", i)));
    EditedBatch batch;
    for (const WeightId& id : {kDown1, kDown2}) {
      const Tensor white_FN = random_f64(48, 200), residuals_DN = random_f64(32, 200);
      for (int64_t i = 0; i < 20 && id == kDown2; ++i) {
        white_FN.select(1, 2 * i + 1).copy_(3 * white_FN.select(1, 2 * i) + 0.3 * random_f64(48, 1).squeeze(1));
        if (has_same_residuals) residuals_DN.select(1, 2 * i + 1).copy_(residuals_DN.select(1, 2 * i));
      }
      SolvedSystem system{.id = id, .residuals_DN = residuals_DN};
      system.keys_FN = lower_FF.defined() ? lower_FF.matmul(white_FN) : white_FN;
      for (int64_t i = 0; i < 200; ++i) system.edits.push_back({i});
      batch.systems.push_back(system);
      batch.changes.push_back({id, {LowRankDelta{residuals_DN, random_f64(200, 48)}}});
    }
    histories[0].add(entry, batch, tiny.config);
    return histories;
  }

  static Pairs expected() {
    Pairs pairs;
    for (int i = 0; i < 20; ++i) pairs.insert({cat("fact ", 2 * i), cat("fact ", 2 * i + 1)});
    return pairs;
  }
};

TEST_F(NearKeysTest, AreFoundInTheMetric) {
  torch::manual_seed(1);
  const Tensor mixing = random_f64(48, 48) * torch::logspace(-2, 2, 48, 10, torch::kDouble);
  const Tensor lower_FF = at::linalg_cholesky(mixing.matmul(mixing.t()));
  const std::vector<EditHistory> histories = planted(lower_FF, /*has_same_residuals=*/false);
  ConflictOptions options;
  options.factor = [&](WeightId) { return lower_FF; };
  const ConflictReport report = find(histories, options);
  EXPECT_EQ(pairs(report.conflicts, ConflictKind::kNearKeys), expected());
  EXPECT_EQ(report.conflicts.size(), 20u);
  for (const Conflict& conflict : report.conflicts) {
    EXPECT_GT(conflict.measure, 0.9);
    EXPECT_LT(conflict.measure, 1);
    EXPECT_NE(conflict.what.find("layer 2"), std::string::npos) << conflict.what;
  }
  ASSERT_EQ(report.metrics.size(), 2u);
  EXPECT_TRUE(report.metrics[0].second && report.metrics[1].second);
  // without it others look near: those along the largest directions
  EXPECT_NE(pairs(find(histories).conflicts, ConflictKind::kNearKeys), expected());
}

TEST_F(NearKeysTest, AreFoundByPlainCosinesWithoutStatistics) {
  const ConflictReport report = find(planted({}, /*has_same_residuals=*/false));
  EXPECT_EQ(pairs(report.conflicts, ConflictKind::kNearKeys), expected());
  EXPECT_FALSE(report.metrics.at(0).second);
}

TEST_F(NearKeysTest, OfOneValueAreNone) {
  EXPECT_TRUE(find(planted({}, /*has_same_residuals=*/true)).conflicts.empty());
}

TEST_F(ConflictsTest, OfSeveralBasesIsACallersMistake) {
  std::vector<EditHistory> histories{EditHistory({.weights = "aa"}), EditHistory({.weights = "bb"})};
  EXPECT_THROW(find(histories), std::logic_error);
  EXPECT_TRUE(find({}).conflicts.empty());
}

}  // namespace
}  // namespace lancet
