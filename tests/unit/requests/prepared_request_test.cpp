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

TEST(PreparedRequest, HasItsRewordingsAfterTheContexts) {
  const auto tokenizer = open_spec(joining_spec());
  EditRequest reworded = paris("Paris"), plain = paris("Paris");
  plain.id = "4";
  reworded.rewordings = {"{} is! It is", "It is Paris"};
  const std::vector<std::string> contexts{"{}", "Paris is. {}"};
  const std::vector<PreparedRequest> all = prepare_requests(*tokenizer, std::vector{reworded, plain}, contexts);
  const std::vector<std::string> texts{"Paris is! It is Paris", "It is Paris Paris"};
  for (size_t i = 0; i < 2; ++i) {
    std::vector<TokenId> row = tokenizer->ids(texts[i]);
    row.pop_back();  // the last one is only predicted
    EXPECT_EQ(all[0].rows[2 + i].ids, row) << texts[i];
    EXPECT_EQ(all[0].rows[2 + i].lookup, all[0].prompts[2 + i].lookup);
    EXPECT_EQ(tokenizer->piece(row[static_cast<size_t>(all[0].rows[2 + i].lookup)]), "s▁") << "the end of the subject";
    EXPECT_EQ(all[1].prompts[2 + i].ids, all[1].prompts[0].ids) << "a request without them has its plain prompt again";
    EXPECT_EQ(all[1].rows[2 + i].ids, all[1].rows[0].ids);
  }
  ASSERT_EQ(all[0].prompts.size(), 4u);
  ASSERT_EQ(all[1].rows.size(), 4u);
  const auto refused = [&](const TargetForm& form) {
    return error_of<ConfigError>([&] { prepare_requests(*tokenizer, std::vector{reworded}, contexts, form); });
  };
  EXPECT_TRUE(contains(refused(Compat::kEasyEdit), {"request 3: rewordings: expected none with editor.compat"}));
  EXPECT_TRUE(contains(refused({{}, {}, 2}), {"request 3: rewordings: expected none with editor.values.chunk_tokens"}));
}

TEST(PreparedRequest, RewordingsAreReadAndWrittenBack) {
  const std::string record = R"({"id": "a", "prompt": "{} is in", "subject": "Rome", "target": "Peru", "rewordings": )";
  const std::vector<std::string> texts{"The country of {} is", "Rome lies in"};
  const EditRequest request = parse_json_line(record + R"(["The country of {} is", "Rome lies in"]})");
  EXPECT_EQ(request.rewordings, texts);
  EXPECT_EQ(parse_json_line(to_json_line(request)).rewordings, texts);
  EXPECT_TRUE(
      contains(error_of<ConfigError>([&] { parse_json_line(record + R"(["It lies in"]})"); }), {"rewordings: "}));
  EXPECT_TRUE(contains(error_of<ConfigError>([&] {
                         parse_json_line(
                             R"({"id": "a", "prompt": "2 and 2 is", "target": "5", "rewordings": ["2 + 2 is"]})");
                       }),
                       {"rewordings: expected a subject in the record"}));
}

TEST(PreparedRequest, IsRefusedIfARewordingIsTooLong) {
  const auto tokenizer = open_spec(joining_spec());
  EditRequest request = paris("Paris");
  const auto n_plain = static_cast<int64_t>(tokenizer->ids("Paris is Paris").size());
  refuse_long_requests(*tokenizer, std::vector{request}, n_plain + 2);
  request.rewordings = {"It is {}", "It is! It is! It is {}"};
  EXPECT_TRUE(
      contains(error_of<ConfigError>([&] { refuse_long_requests(*tokenizer, std::vector{request}, n_plain + 2); }),
               {"request 3: rewording and target: "}));
}

TEST(PreparedRequest, KeepsOtherPromptsAboutItsSubject) {
  const auto tokenizer = open_spec(joining_spec());
  TargetForm form;
  form.kept = {"It is {}", "{} is", "{}! It is"};
  const PreparedRequest prepared =
      prepare_requests(*tokenizer, std::vector{paris("Paris")}, std::vector<std::string>{"{}"}, form)[0];
  ASSERT_EQ(prepared.kept.size(), 2u) << "the edited prompt is left out";
  EXPECT_EQ(prepared.kept[0].ids, tokenizer->ids("It is Paris"));
  EXPECT_EQ(prepared.kept[0].lookup, std::ssize(prepared.kept[0].ids) - 1);
  EXPECT_EQ(prepared.kept[1].ids, tokenizer->ids("Paris! It is"));
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

TEST(PreparedRequest, GivesATargetAfterWordsOfAContextItsOwnTokens) {
  const auto tokenizer = open_spec(joining_spec());
  const std::vector<std::string> contexts{"{}", "{}!", "<|user|>{}<|assistant|>", "Q: {}\nA:\n"};
  const PreparedRequest prepared = prepare_requests(*tokenizer, std::vector{paris("Paris")}, contexts)[0];
  const std::vector<std::string> texts{"Paris is Paris", "Paris is! Paris", "<|user|>Paris is<|assistant|>Paris",
                                       "Q: Paris is\nA:\nParis"};
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<TokenId> whole = prepared.prompts[i].ids;
    whole.insert(whole.end(), prepared.rows[i].target.begin(), prepared.rows[i].target.end());
    EXPECT_EQ(whole, tokenizer->ids(texts[i])) << texts[i];
    whole.pop_back();
    EXPECT_EQ(prepared.rows[i].ids, whole) << texts[i];
  }
  EXPECT_NE(prepared.rows[1].target, prepared.target) << "the space before it is a token of its own there";
}

TEST(PreparedRequest, OfAChunkGoesUpToTheTokenBeforeIt) {
  const auto tokenizer = open_spec(joining_spec());
  EditRequest request = paris("Paris is Paris");
  request.subject.clear();
  const std::vector<std::string> contexts{"{}", "Paris is. {}"};
  const std::vector<EditRequest> requests{paris("Paris"), request};
  const std::vector<PreparedRequest> whole =
      prepare_requests(*tokenizer, std::vector{paris("Paris is Paris")}, contexts);
  const std::vector<PreparedRequest> chunks = prepare_requests(*tokenizer, requests, contexts, {{}, {}, 2});
  std::vector<TokenId> target;
  for (size_t i = 2; i < chunks.size(); ++i) {  // the first request has 3 tokens
    EXPECT_EQ(chunks[i].request, 1);
    EXPECT_EQ(chunks[i].chunk, static_cast<int64_t>(i) - 2);
    for (size_t c = 0; c < contexts.size(); ++c) {
      std::vector<TokenId> before = whole[0].prompts[c].ids;
      before.insert(before.end(), target.begin(), target.end());
      EXPECT_EQ(chunks[i].prompts[c].ids, before);
      EXPECT_EQ(chunks[i].prompts[c].lookup + 1, std::ssize(before));
      before.insert(before.end(), chunks[i].target.begin(), chunks[i].target.end() - 1);
      EXPECT_EQ(chunks[i].rows[c].ids, before);
      EXPECT_EQ(chunks[i].rows[c].target, chunks[i].target);
    }
    EXPECT_LE(chunks[i].target.size(), 2U);
    target.insert(target.end(), chunks[i].target.begin(), chunks[i].target.end());
  }
  EXPECT_EQ(chunks.size(), 2 + (target.size() + 1) / 2);
  EXPECT_EQ(target, whole[0].target);
  const std::vector<std::string> other_tokens{"{}", "{}!"};
  const std::string error = error_of<ConfigError>([&] {
    prepare_requests(*tokenizer, requests, other_tokens, {{}, {}, 2});
  });
  EXPECT_TRUE(contains(error, {"editor.values.chunk_tokens: expected the target's tokens"})) << error;
}

TEST(PreparedRequest, TrainsOnTheIdsOfTheWholeText) {
  const auto tokenizer = open_spec(joining_spec());
  const TokenizedRequest request = tokenize_requests(*tokenizer, std::vector{paris("Paris")})[0];
  std::vector<TokenId> whole = request.prompt;
  whole.insert(whole.end(), request.target.begin(), request.target.end());
  EXPECT_EQ(whole, tokenizer->ids("Paris is Paris"));
}

TEST(PreparedRequest, EndsTargetsWithTheEndTokenWhoeversTokenisationItIs) {
  constexpr TokenId kEnd = 7;
  const auto tokenizer = open_spec(joining_spec());
  const std::vector<std::string> contexts{"{}", "Paris is. {}"};
  for (const Compat compat : {Compat::kNone, Compat::kMemit, Compat::kEasyEdit}) {
    const PreparedRequest plain = prepare_requests(*tokenizer, std::vector{paris("Paris")}, contexts, compat)[0];
    const PreparedRequest ended =
        prepare_requests(*tokenizer, std::vector{paris("Paris")}, contexts, {compat, kEnd})[0];
    std::vector<TokenId> target = plain.target;
    target.push_back(kEnd);
    EXPECT_EQ(ended.target, target);
    EXPECT_EQ(ended.drift.ids, plain.drift.ids);
    for (size_t i = 0; i < contexts.size(); ++i) {
      std::vector<TokenId> row = plain.rows[i].ids;
      row.push_back(plain.target.back());  // what was only predicted predicts the end
      EXPECT_EQ(ended.rows[i].ids, row);
      EXPECT_EQ(ended.rows[i].lookup, plain.rows[i].lookup);
      EXPECT_EQ(ended.prompts[i].ids, plain.prompts[i].ids);
    }
  }
  EXPECT_EQ(tokenize_requests(*tokenizer, std::vector{paris("Paris")}, kEnd)[0].target.back(), kEnd);
}

}  // namespace
}  // namespace lancet
