// Requests whose prompt's last token takes the space before the target: in every context the ids are those of the
// whole text.
#include "lancet/requests/prepared_request.h"

#include <gtest/gtest.h>

#include "lancet/core/error.h"
#include "support/text_fixture.h"

namespace lancet {
namespace {

using testing::contains;
using testing::error_of;
using testing::joining_spec;
using testing::open_spec;

EditRequest paris(const std::string& target) {
  EditRequest request;
  request.id = "3";
  request.subject = "Paris";
  request.prompt = fill_prompt("{} is", request.subject, "request 3");
  request.target = target;
  return request;
}

TEST(PreparedRequest, JoinsPromptAndTargetInEveryContext) {
  const auto tokenizer = open_spec(joining_spec());
  const PreparedRequest prepared =
      prepare_requests(*tokenizer, std::vector{paris("Paris")}, std::vector<std::string>{"{}", "Paris is. {}"})[0];
  const std::vector<std::string> texts{"Paris is Paris", "Paris is. Paris is Paris"};
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<TokenId> row = tokenizer->ids(texts[i]);
    row.pop_back();  // the last one is only predicted
    EXPECT_EQ(prepared.rows[i].ids, row);
    EXPECT_EQ(prepared.rows[i].lookup, prepared.prompts[i].lookup);
    EXPECT_EQ(prepared.prompts[i].ids.size() + prepared.target.size(), row.size() + 1);
    EXPECT_EQ(tokenizer->piece(row[static_cast<size_t>(prepared.prompts[i].lookup)]), "s▁") << "the end of the subject";
  }
  EXPECT_EQ(testing::pieces_of(*tokenizer, prepared.target), (std::vector<std::string>{"P", "ar", "is"}));
}

TEST(PreparedRequest, RefusesAContextInWhichTheTargetHasOtherTokens) {
  const auto tokenizer = open_spec(joining_spec());
  EXPECT_TRUE(
      contains(error_of<ConfigError>([&] {
                 prepare_requests(*tokenizer, std::vector{paris("Paris")}, std::vector<std::string>{"{}", "{}!"});
               }),
               {"request 3, context template \"{}!\": target \"Paris\" has other tokens there"}));
}

TEST(PreparedRequest, TrainsOnTheIdsOfTheWholeText) {
  const auto tokenizer = open_spec(joining_spec());
  const TokenizedRequest request = tokenize_requests(*tokenizer, std::vector{paris("Paris")})[0];
  std::vector<TokenId> whole = request.prompt;
  whole.insert(whole.end(), request.target.begin(), request.target.end());
  EXPECT_EQ(whole, tokenizer->ids("Paris is Paris"));
}

}  // namespace
}  // namespace lancet
