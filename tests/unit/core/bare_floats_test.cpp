#include "lancet/core/strict_json.h"

#include <gtest/gtest.h>

namespace lancet {
namespace {

TEST(BareFloats, AreReadAsTheObjectsThatTransformersWrites) {
  EXPECT_EQ(
      bare_floats_as_objects(R"({"limit": [0.0, Infinity], "low":-Infinity,"n": NaN})"),
      R"({"limit": [0.0, {"__float__": "Infinity"}], "low":{"__float__": "-Infinity"},"n": {"__float__": "NaN"}})");
  EXPECT_EQ(parse_strict_json(bare_floats_as_objects("[\n  -Infinity,\n  Infinity]")),
            nlohmann::json::parse(R"([{"__float__": "-Infinity"}, {"__float__": "Infinity"}])"));
}

TEST(BareFloats, InStringsAreText) {
  for (const char* text : {R"({"Infinity": "to Infinity, NaN", "b": "\"Infinity", "c": "\\", "d": [""]})",
                           "\"-Infinity", "\"\\", "", "{}"})
    EXPECT_EQ(bare_floats_as_objects(text), text);
  EXPECT_EQ(bare_floats_as_objects(R"(["\\", NaN, "\\\" NaN"])"), R"(["\\", {"__float__": "NaN"}, "\\\" NaN"])");
}

TEST(BareFloats, ThatNoPythonReadsAreRefused) {
  for (const char* text : {"[1Infinity]", "[Infinity1]", "[- Infinity]", "[+Infinity]", "[infinity]", "[Infinit]",
                           "[NaNNaN]", "[--Infinity]", "{NaN: 1}", "[-NaN]", "[1 NaN]"})
    EXPECT_THROW(parse_strict_json(bare_floats_as_objects(text)), JsonProblem) << text;
}

TEST(BareFloats, AreBareAgainInWhateverLayout) {
  const std::string text =
      R"({"limit":[0.0,Infinity],"text":"{\"__float__\": \"Infinity\"} NaN","low":-Infinity,"n":{"a":NaN}})";
  const std::string read = bare_floats_as_objects(text);
  EXPECT_EQ(objects_as_bare_floats(read), text);
  for (const int indent : {-1, 0, 2}) {
    const std::string written = objects_as_bare_floats(parse_ordered_json(read).dump(indent));
    EXPECT_EQ(parse_ordered_json(bare_floats_as_objects(written)), parse_ordered_json(read)) << indent;
    EXPECT_EQ(written.find("{\"__float__"), std::string::npos) << written;
    EXPECT_EQ(written.find("\"__float__\":"), std::string::npos) << written;
  }
  for (const char* other : {R"({"__float__": "1.5"})", R"({"__float__": "NaN", "more": 1})", R"(["__float__"])"})
    EXPECT_EQ(objects_as_bare_floats(other), other);
}

}  // namespace
}  // namespace lancet
