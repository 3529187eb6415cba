#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/diff/edits_diff.h"
#include "support/io_support.h"

namespace lancet {
namespace {

using namespace testing;

EditRequest fact(const std::string& id, const std::string& prompt, const std::string& subject,
                 const std::string& relation, const std::string& target) {
  EditRequest request;
  request.id = id;
  request.subject = subject;
  request.prompt = subject.empty() ? SubjectPrompt{prompt, {}} : fill_prompt(prompt, subject, "test");
  request.target = target;
  request.relation = relation;
  return request;
}

/// Each request a batch of its own.
Journal journal_of(const std::string& base, const std::vector<EditRequest>& requests) {
  Journal journal(JournalBase{.weights = base});
  const size_t setting = journal.add_setting({.method = "memit"});
  for (const EditRequest& request : requests) {
    BatchEntry batch{.setting = setting};
    batch.edits.push_back({.request = request});
    journal.add_batch(batch);
  }
  return journal;
}

std::vector<std::string> ids_of(const std::vector<EditRequest>& requests) {
  std::vector<std::string> ids;
  for (const EditRequest& request : requests) ids.push_back(request.id);
  return ids;
}

TEST(EditsDiff, FactsMeetBySubjectAndRelationOrByPrompt) {
  const Journal before = journal_of(
      "a",
      {fact("1", "Lerin lives in", "Lerin", "P19", "Rome"), fact("2", "Hagerup was born in", "Hagerup", "", "Oslo"),
       fact("3", "Hagerup works in", "Hagerup", "", "Bonn"), fact("4", "Lerin's job is", "Lerin", "P106", "poet")});
  const Journal after = journal_of("a", {fact("9", "The home of Lerin is", "Lerin", "P19", " Rome "),
                                         fact("8", "Hagerup was born in ", "Hagerup", "P1", "Paris"),
                                         fact("7", "Duarte works in", "Duarte", "P106", "Bonn")});
  const EditsDiff diff = compare_journals(before, after);
  EXPECT_TRUE(diff.has_one_base());
  EXPECT_EQ(diff.common, 1U);  // of other words, and spaces around the target
  EXPECT_EQ(ids_of(diff.only_before), (std::vector<std::string>{"3", "4"}));
  EXPECT_EQ(ids_of(diff.only_after), (std::vector<std::string>{"7"}));
  ASSERT_EQ(diff.contradictions.size(), 1U);
  EXPECT_EQ(diff.contradictions[0].first.id, "2");
  EXPECT_EQ(diff.contradictions[0].second.id, "8");
}

TEST(EditsDiff, WhatALaterEditReplacedDoesNotCount) {
  const Journal before = journal_of("a", {fact("1", "Lerin lives in", "Lerin", "P19", "Rome"),
                                          fact("2", "Where Lerin lives:", "Lerin", "P19", "Oslo"),
                                          fact("3", "Lerin lives in", "Lerin", "P19", "Bonn")});
  const Journal after = journal_of("b", {fact("1", "Lerin lives in", "Lerin", "P19", "Rome")});
  const EditsDiff diff = compare_journals(before, after);
  EXPECT_FALSE(diff.has_one_base());
  EXPECT_EQ(diff.superseded_before, 2U);
  EXPECT_EQ(diff.superseded_after, 0U);
  EXPECT_TRUE(diff.only_before.empty() && diff.only_after.empty());
  ASSERT_EQ(diff.contradictions.size(), 1U);
  EXPECT_EQ(diff.contradictions[0].first.target, "Bonn");
}

TEST(EditsDiff, ItsJsonHasAllOfIt) {
  const Journal before = journal_of("a", {fact("1", "Lerin lives in", "Lerin", "P19", "Rome")});
  const Journal after =
      journal_of("a", {fact("2", "Lerin lives in", "Lerin", "", "Oslo"), fact("3", "x", "", "", "y")});
  const auto json = nlohmann::json::parse(to_json(compare_journals(before, after), "one", "other"));
  EXPECT_EQ(json["format"], "lancet-edits-diff-1");
  EXPECT_EQ(json["before"]["folder"], "one");
  EXPECT_EQ(json["after"]["base"]["content_hash"], "a");
  EXPECT_EQ(
      json["contradictions"][0]["before"],
      (nlohmann::json{
          {"id", "1"}, {"prompt", "Lerin lives in"}, {"subject", "Lerin"}, {"relation", "P19"}, {"target", "Rome"}}));
  EXPECT_EQ(json["only_after"][0]["id"], "3");
  EXPECT_EQ(json["only_before"].size(), 0U);
}

TEST(EditsDiff, AFolderWithoutAJournalIsRefused) {
  const TempDir folder;
  expect_says(message_of<ConfigError>([&] { compare_edits(folder.path(), folder.path()); }),
              {"edits/journal.jsonl", "without --edits"});
}

}  // namespace
}  // namespace lancet
