// Filling templates, finding the subject's last token, and the ids of a target in its context.
#include <gtest/gtest.h>

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/text/prompt.h"
#include "support/text_fixture.h"

namespace lancet {
namespace {

using nlohmann::json;
using testing::contains;
using testing::error_of;
using testing::joining_spec;
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

Pieces target_pieces(const Tokenizer& tokenizer, const char* prompt, const char* target) {
  return pieces_of(tokenizer, continue_prompt(tokenizer, prompt, target, "r").target);
}

std::string refusal(const Tokenizer& tokenizer, const char* prompt, const char* target) {
  return error_of<ConfigError>([&] { continue_prompt(tokenizer, prompt, target, "request 3"); });
}

TEST(ContinuePrompt, AddsOneSpaceUnlessTheTargetBeginsWithWhiteSpace) {
  const auto tokenizer = open_spec(tiny_spec());
  EXPECT_EQ(target_pieces(*tokenizer, "is", "Paris"), (Pieces{"▁Paris"}));
  EXPECT_EQ(target_pieces(*tokenizer, "is", " Paris"), (Pieces{"▁Paris"}));
  EXPECT_EQ(target_pieces(*tokenizer, "is", "\nP"), (Pieces{"<0x0A>", "P"}));
}

TEST(ContinuePrompt, IsNotEndedByAnEosOfTheTokenizer) {
  const auto tokenizer = open_spec(spec_with_eos(), R"({"eos_token": "</s>"})");
  const ContinuedPrompt continued = continue_prompt(*tokenizer, "is", "Paris", "r");
  EXPECT_EQ(pieces_of(*tokenizer, continued.prompt.ids), (Pieces{"<s>", "▁is"}));
  EXPECT_EQ(pieces_of(*tokenizer, continued.target), (Pieces{"▁Paris"}));
}

TEST(ContinuePrompt, LeavesThePromptAsItIsByItselfWhereWordsAreApart) {
  const auto tokenizer = open_spec(tiny_spec());
  const ContinuedPrompt continued = continue_prompt(*tokenizer, "is", "Paris", "r");
  EXPECT_FALSE(continued.joins);
  EXPECT_EQ(continued.prompt.ids, tokenizer->ids("is"));
  EXPECT_EQ(continued.prompt.spans, tokenizer->encode("is").spans);
}

TEST(ContinuePrompt, GivesThePromptTheSpaceThatItsLastTokenTakes) {
  const auto tokenizer = open_spec(joining_spec());
  const ContinuedPrompt continued = continue_prompt(*tokenizer, "is", "Paris", "r");
  EXPECT_TRUE(continued.joins);
  EXPECT_EQ(pieces_of(*tokenizer, continued.prompt.ids), (Pieces{"<s>", "▁", "i", "s▁"}));
  EXPECT_EQ(pieces_of(*tokenizer, continued.target), (Pieces{"P", "ar", "is"}));
  EXPECT_EQ(continued.prompt.spans.back(), (ByteSpan{1, 3}));
  EXPECT_EQ(continue_prompt(*tokenizer, "is", " Paris", "r").prompt.ids, continued.prompt.ids);
  EXPECT_EQ(pieces_of(*tokenizer, tokenizer->ids("is")), (Pieces{"<s>", "▁is"})) << "other ids with nothing after it";
}

TEST(ContinuePrompt, FindsTheSubjectInATokenThatTakesTheSpace) {
  const auto tokenizer = open_spec(joining_spec());
  const SubjectPrompt prompt = fill_prompt("is {}", "Paris", "r");
  const ContinuedPrompt continued = continue_prompt(*tokenizer, prompt.text, "is", "r");
  const LocatedPrompt located = locate_subject(prompt, continued.prompt);
  EXPECT_EQ(pieces_of(*tokenizer, located.ids), (Pieces{"<s>", "▁", "i", "s▁", "P", "ar", "i", "s▁"}));
  EXPECT_EQ(located.lookup, 7);
  EXPECT_EQ(find_subject(prompt, continued.prompt).first, 4);
}

TEST(ContinuePrompt, NamesTheTokenThatHoldsLettersOfBoth) {
  json spec = joining_spec();
  spec["model"]["vocab"]["s▁P"] = spec["model"]["vocab"].size();
  spec["model"]["merges"].insert(spec["model"]["merges"].begin() + 1, json::array({"s▁", "P"}));
  const auto tokenizer = open_spec(spec);
  EXPECT_TRUE(contains(refusal(*tokenizer, "is", "Paris"), {"request 3: target \"Paris\"", "token \"s▁P\" merges"}));
  EXPECT_EQ(target_pieces(*tokenizer, "is", "is"), (Pieces{"is"})) << "another target has tokens of its own";
}

TEST(ContinuePrompt, RefusesATargetWithoutTokens) {
  const auto tokenizer = open_spec(tiny_spec());
  EXPECT_TRUE(contains(refusal(*tokenizer, "is", ""), {"request 3: the target is empty"}));
  EXPECT_TRUE(contains(refusal(*open_spec(joining_spec()), "is", " "), {"request 3: target \" \" adds no token"}));
}

/// (prompt, target) of every fact of the demo model.
std::vector<std::pair<SubjectPrompt, std::string>> demo_facts() {
  std::ifstream file(LANCET_SOURCE_DIR "/data/requests/demo.json");
  std::vector<std::pair<SubjectPrompt, std::string>> facts;
  for (const json& fact : json::parse(file)) {
    const json& request = fact["requested_rewrite"];
    facts.emplace_back(fill_prompt(request["prompt"].get<std::string>(), request["subject"].get<std::string>(), "fact"),
                       request["target_new"]["str"]);
  }
  return facts;
}

struct WholeTexts {
  int64_t joins = 0;    ///< prompts whose last token takes the space before the target
  int64_t refused = 0;  ///< prompts with a token that holds letters of both
};

/// Checks all demo facts: prompt and target are the ids of the whole text, and the lookup token is where the subject
/// ends.
WholeTexts expect_whole_texts(const Tokenizer& tokenizer) {
  WholeTexts counts;
  for (const auto& [prompt, target] : demo_facts()) {
    ContinuedPrompt continued;
    try {
      continued = continue_prompt(tokenizer, prompt.text, target, "fact");
    } catch (const ConfigError&) {
      ++counts.refused;
      continue;
    }
    std::vector<TokenId> spliced = continued.prompt.ids;
    spliced.insert(spliced.end(), continued.target.begin(), continued.target.end());
    EXPECT_EQ(spliced, tokenizer.ids(prompt.text + " " + target)) << prompt.text;
    const LocatedPrompt located = locate_subject(prompt, continued.prompt);
    const ByteSpan last = continued.prompt.spans[static_cast<size_t>(located.lookup)];
    EXPECT_TRUE(last.intersects(prompt.subject) && last.end >= prompt.subject.end) << prompt.text;
    EXPECT_LE(continued.prompt.spans.back().end, static_cast<int64_t>(prompt.text.size()) + (continued.joins ? 1 : 0));
    counts.joins += continued.joins;
  }
  return counts;
}

TEST(ContinuePrompt, SplitsTheWholeTextOfTheDemoFacts) {
  const WholeTexts counts = expect_whole_texts(*open_tokenizer(LANCET_SOURCE_DIR "/data/demo-model"));
  EXPECT_EQ(counts.joins, 0);
  EXPECT_EQ(counts.refused, 0);
}

// Of the 2000 facts Hugging Face's tokenizers give 1939 prompts other last ids in the whole text; in 8 of them a token
// has letters of prompt and target.
TEST(ContinuePrompt, SplitsTheWholeTextWhereATokenizerJoinsWords) {
  const auto tokenizer = open_tokenizer(LANCET_SOURCE_DIR "/tests/fixtures/tokenizers/joined-words");
  const WholeTexts counts = expect_whole_texts(*tokenizer);
  EXPECT_EQ(counts.joins, 1931);
  EXPECT_EQ(counts.refused, 8);
  EXPECT_TRUE(contains(refusal(*tokenizer, "Karl Kani originated from", "Moscow"), {"token \"from▁M\" merges"}));
}

}  // namespace
}  // namespace lancet
