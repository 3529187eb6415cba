#include "lancet/requests/same_fact.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lancet {
namespace {

EditRequest fact_with(const std::string& id, const std::string& target, const std::string& subject = "Mario Kart",
                      const std::string& prompt = "{} was made by") {
  EditRequest request;
  request.id = id;
  request.subject = subject;
  request.prompt = fill_prompt(prompt, subject, "test");
  request.target = target;
  return request;
}

EditRequest with_relation(EditRequest request, const std::string& relation) {
  request.relation = relation;
  return request;
}

bool is_one_fact(const EditRequest& one, const EditRequest& other) {
  const std::vector<std::string> keys = fact_keys(one);
  return std::ranges::any_of(fact_keys(other),
                             [&](const std::string& key) { return std::ranges::count(keys, key) > 0; });
}

TEST(SameFact, IsOneSubjectAndPromptOrRelation) {
  EXPECT_TRUE(is_one_fact(fact_with("1", "Sony"), fact_with("2", "Sega")));
  EXPECT_TRUE(is_one_fact(fact_with("1", "Sony"), fact_with("2", "Sega", "Mario Kart", " {} was  made by\n")));
  EXPECT_FALSE(is_one_fact(fact_with("1", "Sony"), fact_with("2", "Sony", "Zelda")));
  EXPECT_FALSE(is_one_fact(fact_with("1", "Sony"), fact_with("2", "Sony", "Mario Kart", "{} was sold by")));
  EXPECT_TRUE(is_one_fact(with_relation(fact_with("1", "Sony"), "P178"),
                          with_relation(fact_with("2", "Sony", "Mario Kart", "Who made {}?"), "P178")));
  EXPECT_FALSE(is_one_fact(with_relation(fact_with("1", "Sony"), "P178"),
                           with_relation(fact_with("2", "Sony", "Mario Kart", "Who sold {}?"), "P750")));
}

TEST(SameFact, HasOneTargetByTextAliasOrId) {
  EXPECT_TRUE(has_same_target(fact_with("1", " Sony "), fact_with("2", "Sony")));
  EXPECT_FALSE(has_same_target(fact_with("1", "Sony"), fact_with("2", "Sega")));
  EditRequest company = fact_with("2", "Sony Group");
  company.target_aliases = {"Sony"};
  EXPECT_TRUE(has_same_target(fact_with("1", "Sony"), company) && has_same_target(company, fact_with("1", "Sony")));
  EditRequest one = fact_with("1", "Sony"), other = fact_with("2", "Sonny");
  one.target_id = other.target_id = "Q41187";
  EXPECT_TRUE(has_same_target(one, other));
}

TEST(SameFact, ContradictionsAreEachWithTheOneBefore) {
  const std::vector<EditRequest> requests{fact_with("1", "Sony"), fact_with("2", "Sony", "Zelda"),
                                          fact_with("3", "Sega"), fact_with("4", "Sega"), fact_with("5", "Sony")};
  EXPECT_EQ(find_contradictions(requests), (RequestPairs{{0, 2}, {3, 4}}));
}

TEST(SameFact, IsEditedOnceAndMeasuredByAllItsTexts) {
  RequestFile file;
  file.requests = {fact_with("1", "Sony"), fact_with("2", "Sega", "Zelda"), fact_with("3", "Sony"),
                   fact_with("4", "Sony")};
  file.requests[0].paraphrases = {"a", "b"};
  file.requests[2].paraphrases = {"b", "c"};
  file.requests[3].neighborhood = {"n"};
  const RequestFile once = each_fact_once(file);
  ASSERT_EQ(once.requests.size(), 2u);
  EXPECT_EQ(once.requests[0].id, "1");
  EXPECT_EQ(once.requests[0].paraphrases, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(once.requests[0].neighborhood, std::vector<std::string>{"n"});
  EXPECT_EQ(once.joined, (std::vector<std::string>{"3 (as 1)", "4 (as 1)"}));
}

TEST(SameFact, IsNotJoinedWhereItWouldSayLess) {
  RequestFile file;
  file.requests = {fact_with("1", "Sony"), fact_with("2", "Sega"), fact_with("3", "Sony"),  // Sega came between
                   with_relation(fact_with("4", "Sony"), "P178"),
                   with_relation(fact_with("5", "Sony", "Mario Kart", "Who made {}?"), "P178")};  // another prompt
  EXPECT_EQ(each_fact_once(file).joined, std::vector<std::string>{"4 (as 3)"});
  RequestFile hops;
  hops.requests = {fact_with("1", "Sony"), fact_with("2", "Sony")};
  for (EditRequest& request : hops.requests) request.multihop = {{"Where is the maker of Mario Kart?", {request.id}}};
  EXPECT_EQ(each_fact_once(hops).requests.size(), 2u);
  RequestFile others;
  others.requests = {fact_with("1", "Sony"), fact_with("2", "Sony")};
  others.requests[0].target_true = "Nintendo";
  others.requests[1].target_true = "Sega";
  EXPECT_EQ(each_fact_once(others).requests.size(), 2u);
}

}  // namespace
}  // namespace lancet
