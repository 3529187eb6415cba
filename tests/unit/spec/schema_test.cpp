// The schema and the page as documents; tests/cli/test_schema.py holds them to what the program does.
#include "lancet/spec/schema.h"

#include <nlohmann/json.hpp>

#include "lancet/core/strings.h"
#include "lancet/spec/job_spec.h"
#include "support/core_support.h"

namespace lancet {
namespace {

using Json = nlohmann::ordered_json;

SpecTables some_tables() {
  return {{{"memit", "one"}, {"pmet", "other"}},
          {{"efficacy", "facts", {"efficacy_prob"}}, {"counterfact", "texts", {"section_*"}}},
          {"flat"}};
}

void collect_references(const Json& schema, std::vector<std::string>& all) {
  if (schema.is_object() && schema.contains("$ref")) all.push_back(schema["$ref"]);
  if (schema.is_structured())
    for (const Json& part : schema) collect_references(part, all);
}

TEST(JobSchema, DefinesWhatItRefersTo) {
  const Json schema = Json::parse(job_schema(some_tables()));
  std::vector<std::string> references;
  collect_references(schema, references);
  EXPECT_GT(references.size(), 20u);
  for (const std::string& name : references) EXPECT_TRUE(schema.contains(Json::json_pointer(name.substr(1)))) << name;
}

TEST(JobSchema, KnowsTheOptionsOfEachMethod) {
  const Json definitions = Json::parse(job_schema(some_tables()))["$defs"];
  EXPECT_TRUE(definitions["editor-memit"]["properties"].contains("identity_weight"));
  EXPECT_FALSE(definitions["editor-pmet"]["properties"].contains("identity_weight"));
  EXPECT_EQ(definitions["editor-memit"]["additionalProperties"], false);
  EXPECT_EQ(definitions["editor-pmet"]["properties"]["covariance_weight"]["$ref"],
            "#/$defs/editor.covariance_weight.pmet");
  EXPECT_FALSE(definitions["editor-memit"]["properties"]["values"]["properties"].contains("nll_factor"));
  EXPECT_TRUE(definitions["editor.values"]["properties"].contains("nll_factor"));
}

TEST(JobSchema, HasTypeRangeDefaultAndUnit) {
  const Json batch = Json::parse(job_schema(some_tables()))["properties"]["schedule"]["properties"]["batch"];
  EXPECT_EQ(batch["type"], Json::parse(R"(["integer", "null"])"));
  EXPECT_EQ(batch["minimum"], 0);
  EXPECT_EQ(batch["default"], 0);
  EXPECT_EQ(batch["x-unit"], "requests");
}

TEST(OptionsReference, HasARowForEachOption) {
  const std::string page = options_reference(some_tables());
  for (const PlacedOption& placed : placed_options(JobSpec::kAll, ""))
    EXPECT_NE(page.find(cat("| `", base_of(placed.option).key, "` |")), std::string::npos) << placed.key;
  EXPECT_NE(page.find("\n## `editor.values`\n"), std::string::npos);
  EXPECT_NE(page.find("| `memit` | one |"), std::string::npos);
}

TEST(DottedJobKeys, AreThoseThatSetTakes) {
  const std::vector<std::string> keys = dotted_job_keys();
  for (const char* key : {"run.dtype", "editor.values.lr", "evaluate.side_effects.probes.path", "model"})
    EXPECT_EQ(std::count(keys.begin(), keys.end(), key), 1) << key;
}

}  // namespace
}  // namespace lancet
