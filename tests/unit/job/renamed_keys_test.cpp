#include "lancet/job/job_config.h"

#include <gtest/gtest.h>

#include "lancet/core/error.h"

namespace lancet {
namespace {

PresentNames renamed_job(const std::string& text) { return with_present_names(parse_config(text, "job"), "job"); }

TEST(RenamedKeys, GetTheirPresentNamesWhereverTheyStand) {
  const PresentNames names = renamed_job(
      "run: {frozen: nf4}\n"
      "evaluate: {metrics: [efficacy], costs: {choices: c.jsonl}}\n"
      "editor: {method: memit, covariance_weight: {attained_share: 0.9}}\n"
      "compare: {other: {ridge: {attained_share: 0.5}}}\n"
      "tune: {search: {ridge: [{attained_share: 0.5}, {attained_share: 0.6}]}}\n");
  EXPECT_EQ(to_yaml(names.tree),
            to_yaml(parse_config("run: {quantise_base: nf4}\n"
                                 "evaluate: {metrics: [efficacy], side_effects: {choices: c.jsonl}}\n"
                                 "editor: {method: memit, covariance_weight: {realised_share: 0.9}}\n"
                                 "compare: {other: {ridge: {realised_share: 0.5}}}\n"
                                 "tune: {search: {ridge: [{realised_share: 0.5}, {realised_share: 0.6}]}}\n",
                                 "job")));
  ASSERT_EQ(names.renamed.size(), 6u);
  EXPECT_EQ(names.renamed[1], "evaluate.costs is called evaluate.side_effects now");
  EXPECT_EQ(names.renamed[2],
            "editor.covariance_weight.attained_share is called editor.covariance_weight.realised_share now");
}

TEST(RenamedKeys, AreNoneInJobsOfPresentNames) {
  const std::string job = "evaluate: [efficacy]\neditor: {ridge: {realised_share: 0.5}}\n";
  EXPECT_TRUE(renamed_job(job).renamed.empty());
  EXPECT_EQ(to_yaml(renamed_job(job).tree), to_yaml(parse_config(job, "job")));
}

TEST(RenamedKeys, AreRefusedUnderBothNames) {
  EXPECT_THROW(renamed_job("evaluate: {costs: {}, side_effects: {}}"), ConfigError);
  EXPECT_THROW(renamed_job("editor: {ridge: {attained_share: 0.5, realised_share: 0.5}}"), ConfigError);
}

}  // namespace
}  // namespace lancet
