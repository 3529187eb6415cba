#include "lancet/core/strict_json.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace lancet {
namespace {

std::string json_refusal(const std::string& text, int max_depth = kUsualJsonDepth) {
  try {
    parse_strict_json(text, max_depth);
  } catch (const JsonProblem& problem) {
    return problem.what();
  }
  return "";
}

TEST(StrictJson, GivesWhatTheTextSays) {
  EXPECT_EQ(parse_strict_json(R"({"a": [1, {"b": null}], "c": "d"})"),
            (nlohmann::json{{"a", {1, {{"b", nullptr}}}}, {"c", "d"}}));
}

TEST(StrictJson, RefusesWhatIsNoJsonInWordsOfOneLine) {
  EXPECT_EQ(json_refusal("[1,\n 2,]").find("not valid JSON: parse error at line 2, column 4"), 0U)
      << json_refusal("[1,\n 2,]");
  EXPECT_EQ(json_refusal("").find("not valid JSON: "), 0U);
  EXPECT_EQ(json_refusal("[1e999]").find("not valid JSON: "), 0U);
  EXPECT_EQ(json_refusal("[\"\x01\"]").find('\x01'), std::string::npos);
  EXPECT_LT(json_refusal("[\"" + std::string(100'000, 'x')).size(), 400U);
}

TEST(StrictJson, RefusesAKeyThatStandsTwiceInOneObject) {
  EXPECT_EQ(json_refusal(R"({"a": 1, "b": {"a": 2, "c": 3, "c": 4}})"), "the key 'c' stands twice in one object");
  EXPECT_EQ(json_refusal(R"([{"a": 1}, {"a": 2}, {"b": {"a": 1}, "a": 1}])"), "");
}

TEST(StrictJson, RefusesDeepNesting) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_EQ(json_refusal(nested(4), 4), "");
  EXPECT_EQ(json_refusal(nested(5), 4), "nested deeper than 4 levels");
  EXPECT_EQ(json_refusal(nested(1'000'000)), "nested deeper than 64 levels");
}

TEST(StrictJson, NumbersTheElementsOfTheOutermostListWhereAKeyStandsTwice) {
  std::vector<std::pair<std::string, int64_t>> repeated;
  const std::string text = R"([1, {"a": 1, "a": 2}, [], {"b": {"c": 1, "c": 1}}])";
  const auto note = [&](const std::string& key, int64_t element) { repeated.emplace_back(key, element); };
  EXPECT_EQ(parse_ordered_json(text, 8, note)[1]["a"], 2);
  EXPECT_EQ(repeated, (std::vector<std::pair<std::string, int64_t>>{{"a", 1}, {"c", 3}}));
}

// By the square of their number 100,000 objects would take minutes.
TEST(StrictJson, ReadsManyObjectsOfAListOrAnObject) {
  constexpr int kMany = 100'000;
  std::string list = "[", object = "{";
  for (int i = 0; i < kMany; ++i) {
    list += i == 0 ? "{}" : ",{}";
    object += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":{}";
  }
  EXPECT_EQ(parse_strict_json(list + "]").size(), kMany);
  EXPECT_EQ(parse_strict_json(object + "}").size(), kMany);
}

}  // namespace
}  // namespace lancet
