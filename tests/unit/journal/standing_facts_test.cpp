// Which edits a later one replaced, and how new ones are numbered.
#include <gtest/gtest.h>

#include "journal_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;

Journal of_targets(const std::vector<std::pair<std::string, std::string>>& edits) {
  Journal journal({.weights = "aa", .config = "bb", .tokenizer = "cc", .folder = "/models/x"});
  journal.add_setting({.method = "memit"});
  for (const auto& [id, target] : edits) {
    BatchEntry batch = some_batch({id});
    batch.edits.front() = some_edit(id, target);
    journal.add_batch(batch);
  }
  return journal;
}

TEST(StandingFacts, AreReplacedByTheLatestOfAnotherTarget) {
  EXPECT_EQ(replaced_edits(of_targets({{"1", "London"}, {"5", "Rome"}})), (ReplacedEdits{{"1", "5"}}));
  EXPECT_EQ(replaced_edits(of_targets({{"1", "London"}, {"5", "Rome"}, {"7", "London"}})), (ReplacedEdits{{"5", "7"}}));
  EXPECT_EQ(replaced_edits(of_targets({{"1", "Rome"}, {"5", "Rome"}})), ReplacedEdits{});
}

TEST(StandingFacts, StandAgainWhenTheLaterOneIsTakenBack) {
  Journal journal = of_targets({{"1", "London"}, {"5", "Rome"}});
  journal.undo({.when = "2026-11-23T08:00:02Z", .keeps = 1, .edits = {"5"}});
  EXPECT_EQ(replaced_edits(journal), ReplacedEdits{});
}

TEST(StandingFacts, TellInTheLogWhatReplacedThem) {
  const Journal journal = of_targets({{"1", "London"}, {"5", "Rome"}});
  const ReplacedEdits replaced = replaced_edits(journal);
  EXPECT_EQ(describe_edit(journal, journal.batches()[0].edits[0], replaced)["replaced_by"], "5");
  EXPECT_TRUE(describe_edit(journal, journal.batches()[1].edits[0], replaced)["replaced_by"].is_null());
}

TEST(NewIds, GoOnAfterAllThatEverWere) {
  const auto ids = [](const Journal& journal, const std::vector<std::string>& taken = {}) {
    return new_ids(journal, taken, 2);
  };
  EXPECT_EQ(ids(of_targets({})), (std::vector<std::string>{"0", "1"}));
  Journal journal = of_targets({{"3", "London"}, {"name", "Rome"}});
  EXPECT_EQ(ids(journal), (std::vector<std::string>{"4", "5"}));
  EXPECT_EQ(ids(journal, {"9", "x"}), (std::vector<std::string>{"10", "11"}));
  journal.undo({.when = "2026-11-23T08:00:02Z", .keeps = 0, .edits = {"3", "name"}});
  EXPECT_EQ(ids(journal), (std::vector<std::string>{"4", "5"}));
}

TEST(Journal, ForgettingABatchForgetsWhatWasMeasuredAfterIt) {
  Journal journal = of_targets({{"1", "London"}});
  journal.add_measure("the weights", {{"w", "h"}}, {{"1", some_measure(0.75)}});
  const std::string text = journal.text();
  journal.add_batch(some_batch({"2"}));
  journal.add_measure("the weights", {{"w", "g"}}, {{"1", some_measure(0.25)}, {"2", some_measure(1)}});
  journal.forget_last_batch();
  EXPECT_EQ(journal.text(), text);
  EXPECT_EQ(journal.measured().at("1").after.at("efficacy"), 0.75);
  EXPECT_EQ(journal.measured().count("2"), 0u);
}

}  // namespace
}  // namespace lancet
