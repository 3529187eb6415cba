#include "lancet/core/strict_json.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <utility>
#include <vector>

namespace lancet {
namespace {

template <typename Parse>
std::string json_problem(const Parse& parse) {
  try {
    parse();
  } catch (const JsonProblem& problem) {
    return problem.what();
  }
  return "";
}

std::string json_refusal(const std::string& text, int max_depth = kUsualJsonDepth) {
  return json_problem([&] { parse_strict_json(text, max_depth); });
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

TEST(StrictJson, AnObjectIsNoOtherValue) {
  EXPECT_EQ(parse_json_object("{\"a\": 1}").at("a"), 1);
  EXPECT_EQ(parse_ordered_object("{\"b\": 1, \"a\": 2}").begin().key(), "b");
  for (const std::string text : {"[]", "1", "null", "\"a\""}) {
    EXPECT_EQ(json_problem([&] { parse_json_object(text); }), "another kind of value") << text;
    EXPECT_EQ(json_problem([&] { parse_ordered_object(text); }), "another kind of value") << text;
  }
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

TEST(StrictJson, KeepsTheOrderOfManyKeysAndFindsTheOneThatStandsTwice) {
  constexpr int kMany = 20'000;
  std::string object = "{";
  for (int i = kMany; i > 0; --i) object += "\"" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  const nlohmann::ordered_json read = parse_ordered_json(object + "\"x\":0}");
  ASSERT_EQ(read.size(), kMany + 1);
  int next = kMany;
  for (const auto& [key, value] : read.items()) {
    EXPECT_EQ(key, next > 0 ? std::to_string(next) : "x") << value;
    --next;
  }
  for (const char* key : {"1", "31", "32", "33", "20000"}) {
    std::vector<std::string> repeated;
    const nlohmann::ordered_json twice = parse_ordered_json(
        object + "\"" + key + "\":0}", 8, [&](const std::string& name, int64_t) { repeated.push_back(name); });
    EXPECT_EQ(repeated, std::vector<std::string>{key});
    EXPECT_EQ(twice.size(), kMany);
    EXPECT_EQ(twice.at(key), 0) << "the last value is kept";
    EXPECT_THROW(parse_ordered_json(object + "\"" + key + "\":0}"), JsonProblem);
  }
}

std::string object_of_keys(int n) {
  std::string object = "{";
  for (int i = 0; i < n; ++i) object += (i == 0 ? "\"a" : ",\"a") + std::to_string(i) + "\":0";
  return object + "}";
}

// By the square of their number they would take minutes.
TEST(StrictJson, ReadsManyKeysInTheirOrderInTimeByTheirNumber) {
  const std::string object = object_of_keys(65'536);
  const std::clock_t begin = std::clock();
  EXPECT_EQ(parse_ordered_json(object).size(), 65'536U);
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 10.0);
}

TEST(StrictJson, RefusesAnOrderedObjectOfTooManyKeysInWords) {
  const std::string object = object_of_keys(65'537);
  try {
    parse_ordered_json(object);
    ADD_FAILURE() << "it was read";
  } catch (const JsonProblem& problem) {
    EXPECT_STREQ(problem.what(), "an object of more than 65536 keys");
  }
  EXPECT_EQ(parse_strict_json(object).size(), 65'537U);
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
