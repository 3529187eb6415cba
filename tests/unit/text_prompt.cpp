// Filling templates, finding the subject's last token, and the ids of a target in its context.
#include <gtest/gtest.h>

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/text/prompt.h"
#include "text_fixture.h"

namespace lancet {
namespace {

using nlohmann::json;
using testing::contains;
using testing::error_of;
using testing::open_spec;
using testing::pieces_of;
using testing::tiny_spec;
using Pieces = std::vector<std::string>;

std::string subject_of(const SubjectPrompt& prompt) {
  return prompt.text.substr(static_cast<size_t>(prompt.subject.begin),
                            static_cast<size_t>(prompt.subject.end - prompt.subject.begin));
}

TEST(FillPrompt, PutsTheSubjectInItsPlace) {
  const SubjectPrompt prompt = fill_prompt("Where is {}?", "Zürich", "request 3");
  EXPECT_EQ(prompt.text, "Where is Zürich?");
  EXPECT_EQ(prompt.subject, (ByteSpan{9, 16}));
}

TEST(FillPrompt, FindsTheSubjectInAFilledPrompt) {
  const SubjectPrompt prompt = fill_prompt("Where is Zürich?", "Zürich", "request 3");
  EXPECT_EQ(prompt.text, "Where is Zürich?");
  EXPECT_EQ(prompt.subject, (ByteSpan{9, 16}));
}

TEST(FillPrompt, ThePlaceDecidesWhenTheSubjectStandsElsewhereToo) {
  const SubjectPrompt prompt = fill_prompt("Rome, not {}, is", "Rome", "request 3");
  EXPECT_EQ(prompt.subject, (ByteSpan{10, 14}));
}

TEST(FillPrompt, RefusesPromptsWithoutOneClearPlace) {
  const auto error = [](const char* prompt, const char* subject) {
    return error_of<ConfigError>([&] { fill_prompt(prompt, subject, "request 3"); });
  };
  EXPECT_TRUE(contains(error("{} is", ""), {"request 3: the subject is empty"}));
  EXPECT_TRUE(contains(error("{} and {} is", "Rome"), {"request 3", "{} stands 2 times"}));
  EXPECT_TRUE(contains(error("Paris is", "Rome"), {"neither {} nor the subject \"Rome\""}));
  EXPECT_TRUE(contains(error("Rome is Rome", "Rome"), {"stands 2 times", "write {} in place of"}));
  EXPECT_TRUE(contains(error("aaa", "aa"), {"stands 2 times"})) << "overlapping places are two";
}

TEST(PlaceInContext, MovesTheSubject) {
  const SubjectPrompt placed = place_in_context("I know. {} Yes", fill_prompt("Is {} big?", "Rome", "r"));
  EXPECT_EQ(placed.text, "I know. Is Rome big? Yes");
  EXPECT_EQ(subject_of(placed), "Rome");
}

TEST(PlaceInContext, RefusesAContextWithoutExactlyOnePlace) {
  const SubjectPrompt prompt = fill_prompt("{} is", "Rome", "r");
  EXPECT_TRUE(contains(error_of<ConfigError>([&] { place_in_context("I know.", prompt); }), {"stands 0 times"}));
  EXPECT_TRUE(contains(error_of<ConfigError>([&] { place_in_context("{} {}", prompt); }), {"stands 2 times"}));
}

TEST(LocateSubject, FindsTheLastTokenOfTheSubject) {
  const auto tokenizer = open_spec(tiny_spec());
  const LocatedPrompt located = locate_subject(*tokenizer, fill_prompt("is {} is", "Paris", "r"));
  EXPECT_EQ(pieces_of(*tokenizer, located.ids), (Pieces{"<s>", "▁is", "▁Paris", "▁is"}));
  EXPECT_EQ(located.lookup, 2);
}

TEST(LocateSubject, TakesATokenThatTheSubjectSharesWithItsSurroundings) {
  const auto tokenizer = open_spec(tiny_spec());
  EXPECT_EQ(locate_subject(*tokenizer, fill_prompt("is {}is", "Par", "r")).lookup, 2) << "▁Paris covers Par";
}

TEST(LocateSubject, FindsTheLastByteOfASubjectThatFallsBackToBytes) {
  const auto tokenizer = open_spec(tiny_spec());
  const LocatedPrompt located = locate_subject(*tokenizer, fill_prompt("{} is", "Paé", "r"));
  EXPECT_EQ(tokenizer->piece(located.ids[static_cast<size_t>(located.lookup)]), "<0xA9>");
}

json spec_with_eos() {
  json spec = tiny_spec();
  spec["post_processor"]["single"].push_back({{"SpecialToken", {{"id", "</s>"}, {"type_id", 0}}}});
  spec["post_processor"]["special_tokens"]["</s>"] = {{"id", "</s>"}, {"ids", {2}}, {"tokens", {"</s>"}}};
  return spec;
}

TEST(LocateSubject, LeavesOffAnEosThatWouldEndThePrompt) {
  const auto tokenizer = open_spec(spec_with_eos(), R"({"eos_token": "</s>"})");
  EXPECT_EQ(tokenizer->ids("Paris is").back(), 2);
  const LocatedPrompt located = locate_subject(*tokenizer, fill_prompt("{} is", "Paris", "r"));
  EXPECT_EQ(pieces_of(*tokenizer, located.ids), (Pieces{"<s>", "▁Paris", "▁is"}));
}

TEST(LocateSubject, RefusesASubjectThatTheTokenizerDrops) {
  json spec = tiny_spec();
  spec["model"]["byte_fallback"] = false;
  spec["model"]["unk_token"] = nullptr;
  const auto tokenizer = open_spec(spec);
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { locate_subject(*tokenizer, fill_prompt("{} is", "é", "r")); }),
                       {"no token covers the subject (bytes 0 to 2)"}));
}

TEST(ContinuationIds, AddOneSpaceUnlessTheTargetBeginsWithWhiteSpace) {
  const auto tokenizer = open_spec(tiny_spec());
  EXPECT_EQ(pieces_of(*tokenizer, continuation_ids(*tokenizer, "is", "Paris", "r")), (Pieces{"▁Paris"}));
  EXPECT_EQ(pieces_of(*tokenizer, continuation_ids(*tokenizer, "is", " Paris", "r")), (Pieces{"▁Paris"}));
  EXPECT_EQ(pieces_of(*tokenizer, continuation_ids(*tokenizer, "is", "\nP", "r")), (Pieces{"<0x0A>", "P"}));
}

TEST(ContinuationIds, AreNotEndedByAnEosOfTheTokenizer) {
  const auto tokenizer = open_spec(spec_with_eos(), R"({"eos_token": "</s>"})");
  EXPECT_EQ(pieces_of(*tokenizer, continuation_ids(*tokenizer, "is", "Paris", "r")), (Pieces{"▁Paris"}));
}

TEST(ContinuationIds, NameTheTokenThatMergesAcrossTheBoundary) {
  json spec = tiny_spec();
  spec["model"]["vocab"]["s▁"] = spec["model"]["vocab"].size();
  spec["model"]["merges"].insert(spec["model"]["merges"].begin(), json::array({"s", "▁"}));
  const auto tokenizer = open_spec(spec);
  EXPECT_TRUE(contains(error_of<ConfigError>([&] { continuation_ids(*tokenizer, "is", "Paris", "request 3"); }),
                       {"request 3: target \"Paris\"", "token \"s▁\" merges"}));
}

TEST(ContinuationIds, RefuseATargetWithoutTokens) {
  const auto tokenizer = open_spec(tiny_spec());
  EXPECT_TRUE(contains(error_of<ConfigError>([&] { continuation_ids(*tokenizer, "is", "", "request 3"); }),
                       {"request 3: the target is empty"}));
}

TEST(ContinuationIds, FollowThePromptOnTheWholeTextOfTheDemoFacts) {
  const std::filesystem::path folder = LANCET_SOURCE_DIR "/../shared/data/models/demo";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  const auto tokenizer = open_tokenizer(folder);
  std::ifstream file(folder / "facts.json");
  const json facts = json::parse(file);
  ASSERT_GE(facts.size(), 1000u);
  for (const json& fact : facts) {
    const json& request = fact.contains("requested_rewrite") ? fact["requested_rewrite"] : fact;
    const std::string target = request["target_new"].is_object() ? request["target_new"]["str"] : request["target_new"];
    const SubjectPrompt prompt =
        fill_prompt(request["prompt"].get<std::string>(), request["subject"].get<std::string>(), "fact");
    const LocatedPrompt located = locate_subject(*tokenizer, prompt);
    std::vector<TokenId> spliced = located.ids;
    const std::vector<TokenId> continuation = continuation_ids(*tokenizer, prompt.text, target, "fact");
    spliced.insert(spliced.end(), continuation.begin(), continuation.end());
    ASSERT_EQ(spliced, tokenizer->ids(prompt.text + " " + target));
    const Encoding encoding = tokenizer->encode(prompt.text);
    const auto lookup = static_cast<size_t>(located.lookup);
    ASSERT_TRUE(encoding.spans[lookup].intersects(prompt.subject)) << prompt.text;
    ASSERT_GE(encoding.spans[lookup].end, prompt.subject.end) << prompt.text;
  }
}

}  // namespace
}  // namespace lancet
