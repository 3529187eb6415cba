// What pages may send, and what is said of what they may not.
#include "orders.h"

#include <gtest/gtest.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet::testing {
namespace {

HttpRequest body(const std::string& text) { return {.method = "POST", .body = text}; }

/// What `parse` says of a body that it refuses; empty where it takes it.
template <typename Parse>
std::string refusal_to_parse(const Parse& parse, const std::string& text) {
  try {
    parse(body(text));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST(Orders, OfQuestionsHaveAPromptAndALength) {
  const AskOrder order = parse_ask(body(R"({"prompt": "Rome is", "tokens": 8})"));
  EXPECT_EQ(order.prompt, "Rome is");
  EXPECT_EQ(order.options.tokens, 8);
  EXPECT_TRUE(order.options.sampling.is_greedy());
  EXPECT_EQ(order.weights, std::vector{AskedWeights::kEdited});
  EXPECT_FALSE(order.is_chat);
  EXPECT_EQ(refusal_to_parse(parse_ask, R"({"tokens": 8})"), "prompt: expected a text");
  EXPECT_EQ(refusal_to_parse(parse_ask, R"({"prompt": "a", "tokens": 2049})"),
            "tokens: expected a whole number from 1 to 2048");
  EXPECT_EQ(refusal_to_parse(parse_ask, R"({"prompt": "a", "tokens": 1.5})"),
            "tokens: expected a whole number from 1 to 2048");
  EXPECT_EQ(refusal_to_parse(parse_ask, R"({"prompt": "a", "tokens": 1, "best_of": 3})"), "'best_of': no such key");
  EXPECT_EQ(refusal_to_parse(parse_ask, R"(["prompt"])"), "expected a JSON object");
  EXPECT_NE(refusal_to_parse(parse_ask, R"({"prompt": "a", "prompt": "b", "tokens": 1})"), "");
}

TEST(Orders, OfQuestionsChooseWeightsSamplingAndChat) {
  const AskOrder order = parse_ask(
      body(R"({"prompt": "a", "tokens": 8, "temperature": 0.5, "seed": 7, "weights": "unedited", "chat": true})"));
  EXPECT_EQ(order.options.sampling.temperature, 0.5);
  EXPECT_EQ(order.options.sampling.seed, 7u);
  EXPECT_EQ(order.weights, std::vector{AskedWeights::kUnedited});
  EXPECT_TRUE(order.is_chat);
  const auto with = [](const std::string& more) { return R"({"prompt": "a", "tokens": 1, )" + more + "}"; };
  const AskOrder both = parse_ask(body(with(R"("weights": "both")")));
  EXPECT_EQ(both.weights, (std::vector{AskedWeights::kUnedited, AskedWeights::kEdited}));
  EXPECT_EQ(refusal_to_parse(parse_ask, with(R"("weights": "base")")),
            "weights 'base': expected edited, unedited or both");
  EXPECT_EQ(refusal_to_parse(parse_ask, with(R"("chat": 1)")), "chat: expected true or false");
  EXPECT_EQ(refusal_to_parse(parse_ask, with(R"("temperature": "hot")")), "temperature: expected a number");
  EXPECT_TRUE(
      refusal_to_parse(parse_ask, with(R"("seed": 3)")).starts_with("seed: the likeliest token is taken each time"));
  EXPECT_NE(refusal_to_parse(parse_ask, with(R"("temperature": 0)")).find("temperature"), std::string::npos);
}

TEST(Orders, OfEditsHaveOtherWordingsNeighboursAndOldAnswers) {
  SentFiles files;
  const auto parse = [&](const HttpRequest& request) { return parse_edit(request, files); };
  const EditCommand order =
      parse(body(R"({"facts": [{"prompt": "{} lies in", "subject": "Rome", "target": "Peru", "target_true": "Italy",)"
                 R"( "paraphrases": ["{} is in", ""], "neighborhood": ["Milan lies in"]}]})"));
  const EditRequest& fact = order.given.requests.front();
  EXPECT_EQ(fact.target_true, "Italy");
  EXPECT_EQ(fact.paraphrases, std::vector<std::string>{"Rome is in"});
  EXPECT_EQ(fact.neighborhood, std::vector<std::string>{"Milan lies in"});
  for (const char* wrong : {R"("a")", "[5]", "{}"})
    EXPECT_EQ(
        refusal_to_parse(parse, cat(R"({"facts": [{"prompt": "a", "target": "b", "paraphrases": )", wrong, "}]}")),
        "fact 1: paraphrases: expected a list of texts");
}

TEST(Orders, OfEditsHaveFactsOrAFile) {
  SentFiles files;
  const auto parse = [&](const HttpRequest& request) { return parse_edit(request, files); };
  const EditCommand order =
      parse(body(R"({"facts": [{"prompt": "{} lies in", "subject": "Rome", "target": "Peru"}], "method": "rome"})"));
  EXPECT_EQ(order.method, "rome");
  EXPECT_EQ(refusal_to_parse(parse, R"({"method": "rome"})"), "expected facts, or a file of them");
  EXPECT_EQ(refusal_to_parse(parse, R"({"facts": [], "file": 1})"), "expected facts, or a file of them");
  EXPECT_EQ(refusal_to_parse(parse, R"({"file": 0})").substr(0, 5), "file:");
  EXPECT_NE(refusal_to_parse(parse, R"({"file": 7})"), "") << "a file that nobody sent";
  EXPECT_EQ(refusal_to_parse(parse, R"({"facts": [{"prompt": "a", "target": "b"}], "method": 5})"),
            "method: expected a text");
}

TEST(Orders, OfUndoAreTheLastBatchOrAListOfIds) {
  EXPECT_TRUE(parse_undo(body(R"({"edits_version": 3})")).ids.empty());
  EXPECT_EQ(parse_undo(body(R"({"edits_version": 3, "ids": ["a", "b"]})")).ids, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(refusal_to_parse(parse_undo, R"({"ids": ["a"]})").starts_with("edits_version: "));
  for (const char* ids : {R"("a")", "5", "null", R"({"0": "a"})", "[5]"})
    EXPECT_EQ(refusal_to_parse(parse_undo, std::string(R"({"edits_version": 0, "ids": )") + ids + "}"),
              "ids: expected a list of texts")
        << ids;
  EXPECT_EQ(refusal_to_parse(parse_undo, R"({"edits_version": 0, "ids": []})"), "ids: expected at least one");
}

TEST(Orders, OfExportsNameAPlainFolder) {
  const ExportOrder order = parse_export(body(R"({"kind": "gguf", "name": "rome-1.2"})"));
  EXPECT_EQ(order.kind, ExportKind::kGguf);
  EXPECT_EQ(order.name, "rome-1.2");
  EXPECT_EQ(refusal_to_parse(parse_export, R"({"kind": "onnx", "name": "a"})"),
            "kind 'onnx': expected checkpoint, peft or gguf");
  for (const char* name : {"", ".", "..", "../a", "a/b", ".hidden", "-rf", "a.", "a b", "edits-state", "a\\\\b"})
    EXPECT_NE(refusal_to_parse(parse_export, std::string(R"({"kind": "peft", "name": ")") + name + "\"}"), "") << name;
  EXPECT_NE(refusal_to_parse(parse_export, R"({"kind": "peft", "name": ")" + std::string(81, 'a') + "\"}"), "");
}

TEST(Orders, OfCancelsAndMeasuresSayNothingMore) {
  EXPECT_EQ(parse_cancel(body(R"({"item": 4})")), 4);
  EXPECT_NE(refusal_to_parse(parse_cancel, "{}"), "");
  EXPECT_EQ(refusal_to_parse(parse_measure, "{}"), "");
  EXPECT_EQ(refusal_to_parse(parse_measure, R"({"again": true})"), "'again': no such key");
}

TEST(Orders, OfPushesHaveATokenThatCanStandInAHeader) {
  EXPECT_EQ(parse_push(body(R"({"to": "http://a", "token": "sk-1"})")).access.token, "sk-1");
  EXPECT_EQ(parse_push(body(R"({"to": "http://a", "token": ""})")).access.token, "");
  EXPECT_EQ(parse_unpush(body(R"({"token": "sk-1"})")).token, "sk-1");
  EXPECT_EQ(parse_unpush(body("{}")).token, "");
  for (const char* token : {R"(a\r\nX: b)", R"(a\nb)", "a b", R"(a\u0000)", "\xc3\xa9"}) {
    EXPECT_TRUE(refusal_to_parse(parse_push, cat(R"({"to": "http://a", "token": ")", token, R"("})"))
                    .starts_with("token: expected a token"));
    EXPECT_TRUE(refusal_to_parse(parse_unpush, cat(R"({"token": ")", token, R"("})")).starts_with("token: expected"));
  }
  for (const char* key : {"name", "instead_of", "adapter_dir", "server_path", "server"})
    EXPECT_EQ(refusal_to_parse(parse_push, cat(R"({"to": "http://a", ")", key, R"(": "a\u0000b"})")),
              cat(key, ": expected a line of text, got a control character in it"));
}

}  // namespace
}  // namespace lancet::testing
