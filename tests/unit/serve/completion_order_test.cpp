// What clients of OpenAI's API may ask for, what is refused by name, and where an answer ends.
#include "openai/completion_order.h"

#include <gtest/gtest.h>

#include "lancet/core/strings.h"
#include "openai/stop_cut.h"

namespace lancet::testing {
namespace {

const ServedModel kModel{.name = "demo", .vocab_size = 100, .max_positions = 64, .end_ids = {2}, .why_no_chat = "none"};

CompletionOrder order(const std::string& more) {
  return parse_completion(CompletionKind::kText, R"({"prompt": [1, 7])" + more + "}", kModel);
}

/// Status, field and code of the refusal of a body.
std::string refused(const std::string& body, CompletionKind kind = CompletionKind::kText) {
  try {
    parse_completion(kind, body, kModel);
  } catch (const ApiProblem& problem) {
    return std::to_string(problem.error.status) + " " + problem.error.parameter + " " + problem.error.code;
  }
  return "taken";
}

std::string refused_with(const std::string& more) { return refused(R"({"prompt": [1, 7], )" + more + "}"); }

TEST(CompletionOrder, HasTheDefaultsOfOpenAi) {
  const CompletionOrder plain = order("");
  EXPECT_EQ(plain.prompts, (std::vector<std::vector<TokenId>>{{1, 7}}));
  EXPECT_EQ(plain.tokens, 16);
  EXPECT_EQ(plain.samples, 1);
  EXPECT_EQ(plain.sampling.temperature, 1);
  EXPECT_EQ(plain.sampling.top_k, 0);
  EXPECT_EQ(plain.end_ids, kModel.end_ids);
  EXPECT_FALSE(plain.is_streamed || plain.echoes || plain.n_likely.has_value());
  EXPECT_NE(plain.sampling.seed, order("").sampling.seed);
}

TEST(CompletionOrder, IsGreedyAtTemperatureZero) {
  EXPECT_TRUE(order(R"(, "temperature": 0)").sampling.is_greedy());
  EXPECT_FALSE(order(R"(, "temperature": 0.5)").sampling.is_greedy());
}

TEST(CompletionOrder, TakesWhatItHonours) {
  const CompletionOrder all = order(
      R"(, "max_tokens": 0, "echo": true, "n": 3, "seed": 5, "top_k": -1, "top_p": 0.5, "stop": ["a", "b"],
         "stop_token_ids": [9], "logprobs": 2, "stream": true, "stream_options": {"include_usage": true})");
  EXPECT_EQ(all.tokens, 0);
  EXPECT_EQ(all.samples, 3);
  EXPECT_EQ(all.sampling.seed, 5U);
  EXPECT_EQ(all.sampling.top_p, 0.5);
  EXPECT_EQ(all.stops, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(all.end_ids, (std::vector<TokenId>{2, 9}));
  EXPECT_EQ(all.n_likely, 2);
  EXPECT_TRUE(all.is_streamed && all.streams_usage && all.echoes);
  EXPECT_EQ(order(R"(, "stop": "x")").stops, std::vector<std::string>{"x"});
}

TEST(CompletionOrder, IgnoresFieldsThatChangeNothing) {
  EXPECT_EQ(refused_with(R"("user": "me", "metadata": {"a": "b"}, "presence_penalty": 0.0, "logit_bias": {},
                            "suffix": null, "unknown": null, "best_of": 1)"),
            "taken");
}

TEST(CompletionOrder, RefusesByNameWhatWouldChangeTheAnswer) {
  for (const char* field : {"presence_penalty", "frequency_penalty", "repetition_penalty", "min_p", "best_of", "suffix",
                            "logit_bias", "tools", "guided_json", "temprature"})
    EXPECT_EQ(refused_with("\"" + std::string(field) + "\": 0.25"),
              "400 " + std::string(field) + " unsupported_parameter");
}

TEST(CompletionOrder, RefusesWrongValuesByTheFieldsName) {
  EXPECT_EQ(refused("{"), "400  ");
  EXPECT_EQ(refused("[]"), "400  ");
  EXPECT_EQ(refused("{}"), "400 prompt ");
  EXPECT_EQ(refused(R"({"prompt": []})"), "400 prompt ");
  EXPECT_EQ(refused(R"({"prompt": [[]]})"), "400 prompt ");
  EXPECT_EQ(refused(R"({"prompt": [100]})"), "400 prompt ");
  EXPECT_EQ(refused(R"({"prompt": [1, "a"]})"), "400 prompt ");
  EXPECT_EQ(refused_with(R"("model": "other")"), "404 model model_not_found");
  EXPECT_EQ(refused_with(R"("max_tokens": 0)"), "400 max_tokens ");
  EXPECT_EQ(refused_with(R"("max_tokens": 63)"), "400 prompt context_length_exceeded");
  EXPECT_EQ(refused_with(R"("max_tokens": 62)"), "taken");
  EXPECT_EQ(refused_with(R"("temperature": 3)"), "400 temperature ");
  EXPECT_EQ(refused_with(R"("temperature": "1")"), "400 temperature ");
  EXPECT_EQ(refused_with(R"("top_p": 1.5)"), "400 top_p ");
  EXPECT_EQ(refused_with(R"("n": 129)"), "400 n ");
  EXPECT_EQ(refused_with(R"("stop": [""])"), "400 stop ");
  EXPECT_EQ(refused_with(R"("stop": ["a", "b", "c", "d", "e"])"), "400 stop ");
  EXPECT_EQ(refused_with(R"("stream": 1)"), "400 stream ");
  EXPECT_EQ(refused_with(R"("logprobs": true)"), "400 logprobs ");
  EXPECT_EQ(refused(R"({"messages": [{"role": "user", "content": "a"}]})", CompletionKind::kChat),
            "400 messages no_chat_template");
}

/// Whether a body is taken, or refused by an ApiProblem: anything else fails the test by its exception.
void takes_or_refuses(const std::string& body, CompletionKind kind, const ServedModel& model) {
  try {
    parse_completion(kind, body, model);
  } catch (const ApiProblem& problem) {
    EXPECT_TRUE(problem.error.status == 400 || problem.error.status == 404) << body;
  } catch (const std::exception& error) {
    ADD_FAILURE() << body << ": " << error.what();
  }
}

constexpr const char* kValues[] = {
    "null",          "true",   "5",           "-1", "1.5",  "1e300",  "18446744073709551615",
    R"("")",         R"("x")", R"("text")",   "[]", "[[]]", "[null]", R"(["x"])",
    R"([{"a": 1}])", "{}",     R"({"a": 5})", "[5]"};

TEST(CompletionOrder, RefusesAnyKindOfValueAnywhereInWords) {
  for (const char* value : kValues) {
    for (const char* key :
         {"model", "max_tokens", "n", "temperature", "top_p", "top_k", "seed", "stop", "stop_token_ids", "stream",
          "stream_options", "echo", "logprobs", "best_of", "suffix", "user", "return_tokens_as_token_ids"})
      takes_or_refuses(cat(R"({"prompt": [1, 7], ")", key, "\": ", value, "}"), CompletionKind::kText, kModel);
    takes_or_refuses(cat(R"({"prompt": [1], "stream_options": {"include_usage": )", value, "}}"), CompletionKind::kText,
                     kModel);
    takes_or_refuses(value, CompletionKind::kText, kModel);
  }
}

TEST(CompletionOrder, RefusesAnyKindOfMessageInWords) {
  ServedModel model = kModel;  // whose tokenizer is not reached: what is tried here is refused before
  model.chat = ChatTemplate::by_hand("Q: {} A:");
  const auto in_all_places = [&](const std::string& value) {
    const std::string wrong[] = {
        cat(R"({"messages": )", value, "}"),
        cat(R"({"messages": [)", value, "]}"),
        cat(R"({"messages": [{"role": )", value, R"(, "content": [5]}]})"),
        cat(R"({"messages": [{"role": "user", "content": [)", value, "]}]}"),
        cat(R"({"messages": [{"role": "user", "content": [{"type": )", value, R"(}]}]})"),
        cat(R"({"messages": [{"role": "user", "content": [{"type": "text", "text": [)", value, "]}]}]}")};
    for (const std::string& body : wrong) {
      takes_or_refuses(body, CompletionKind::kChat, model);
      EXPECT_NE(refused(body, CompletionKind::kChat), "taken");
    }
  };
  for (const char* value : kValues) in_all_places(value);
  try {
    parse_completion(CompletionKind::kChat,
                     R"({"messages": [{"role": "user", "content": [{"type": 5, "text": "x"}]}]})", model);
    ADD_FAILURE() << "taken";
  } catch (const ApiProblem& problem) {
    EXPECT_EQ(problem.error.status, 400);
    EXPECT_EQ(problem.error.parameter, "messages");
  }
}

TEST(CompletionOrder, RefusesNumbersThatWouldWrap) {
  EXPECT_EQ(refused_with(R"("top_k": 18446744073709551615)"), "400 top_k ");  // -1, if it were read as signed
  EXPECT_EQ(refused_with(R"("seed": 18446744073709551615)"), "400 seed ");
  EXPECT_EQ(refused_with(R"("seed": -9007199254740992)"), "taken");
  EXPECT_EQ(refused_with(R"("seed": 9007199254740992)"), "taken");
}

TEST(StopCut, HoldsBackWhatMayBeginAStop) {
  StopCut cut({"END", "\n\n"});
  EXPECT_EQ(cut.advance("a E"), "a ");
  EXPECT_EQ(cut.advance("a EN"), "");
  EXPECT_EQ(cut.advance("a ENx\n"), "ENx");
  EXPECT_FALSE(cut.is_stopped());
  EXPECT_EQ(cut.advance("a ENx\n\nEND"), "");
  EXPECT_TRUE(cut.is_stopped());
  EXPECT_EQ(cut.finish("a ENx\n\nEND"), "");
  EXPECT_EQ(cut.told(), "a ENx");
}

TEST(StopCut, GivesTheRestWhereNoStopCame) {
  StopCut cut({"END"});
  EXPECT_EQ(cut.advance("to the EN"), "to the ");
  EXPECT_EQ(cut.finish("to the EN"), "EN");
  EXPECT_FALSE(cut.is_stopped());
}

TEST(StopCut, EndsBeforeTheFirstOfSeveralStops) {
  StopCut cut({"bc", "abc"});
  EXPECT_EQ(cut.finish("xabcbc"), "x");
  EXPECT_TRUE(cut.is_stopped());
}

}  // namespace
}  // namespace lancet::testing
