#include "lancet/pipeline/facts_at_odds.h"

#include <gtest/gtest.h>

namespace lancet {
namespace {

EditRequest request_of(const std::string& id, const std::string& target, const std::string& subject) {
  EditRequest request;
  request.id = id;
  request.subject = subject;
  request.prompt = fill_prompt("{} is in", subject, "test");
  request.target = target;
  return request;
}

using Lines = std::vector<std::string>;

TEST(FactsAtOdds, ContradictEachOther) {
  const std::vector<EditRequest> requests{request_of("1", "Rome", "The Louvre"),
                                          request_of("2", "Berlin", "The Louvre")};
  const Lines lines = facts_at_odds({.requests = requests, .standing = {}, .joined = {}});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].rfind("contradiction: one fact has one target, and not both of requests 1 and 2: 'Rome' and "
                           "'Berlin' after 'The Louvre is in': leave one of each out",
                           0),
            0u)
      << lines[0];
}

TEST(FactsAtOdds, ContradictOrRepeatWhatStands) {
  const std::vector<EditRequest> standing{request_of("1", "London", "The Louvre"),
                                          request_of("2", "Oslo", "The Prado")};
  const std::vector<EditRequest> requests{request_of("5", "Rome", "The Louvre"), request_of("6", "Oslo", "The Prado"),
                                          request_of("7", "Nice", "The Uffizi")};
  EXPECT_EQ(
      facts_at_odds({.requests = requests, .standing = standing, .joined = {}}),
      (Lines{"contradiction with 1 edit that stands, which it replaces: request 5 and edit 1: 'Rome' and 'London' "
             "after 'The Louvre is in'",
             "1 request says what an edit that stands does, and is edited again: 6 (as 2)"}));
}

TEST(FactsAtOdds, NameWhatIsThereTwice) {
  const Lines joined{"4 (as 1)", "5 (as 1)"};
  EXPECT_EQ(facts_at_odds({.requests = {}, .standing = {}, .joined = joined}),
            Lines{"2 requests say what an earlier one does, and a fact is edited once: 4 (as 1), 5 (as 1)"});
}

}  // namespace
}  // namespace lancet
