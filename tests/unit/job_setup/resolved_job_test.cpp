// A job has its editor from the moment at which it is parsed.
#include "lancet/job_setup/resolved_job.h"

#include <gtest/gtest.h>

#include "lancet/core/strings.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/studies/compare_job.h"
#include "support/core_support.h"

namespace lancet {
namespace {

ConfigTree resolving_tree(const std::string& more) {
  return parse_config(
      cat("model: m\nrequests: [{prompt: '{} is in', subject: Rome, target: Peru}]\nevaluate: [efficacy]\n",
          "statistics: {corpus: self}\noutput: {dir: out}\n", more),
      "job");
}

ResolvedJob resolved_from(const std::string& more, JobPurpose purpose = JobPurpose::kEdit) {
  return parse_job(resolving_tree(more), "/jobs", "job", purpose);
}

TEST(ResolvedJob, HasTheEditorOfItsOptionsAndWhatItNeeds) {
  const ResolvedJob job =
      resolved_from("editor: {method: memit, layers: [3, 4], contexts: {generate: 2, length: 5}}\n");
  ASSERT_NE(job.editor, nullptr);
  EXPECT_EQ(job.editor->contexts()->generate, 2);
  EXPECT_TRUE(job.needs.statistics);
  EXPECT_FALSE(job.needs.null_space.has_value());
  EXPECT_TRUE(resolved_from("editor: {method: alphaedit}\n").needs.null_space.has_value());
  EXPECT_FALSE(resolved_from("editor: {method: ft-m, modules: {down: [2]}}\n").needs.statistics);
}

TEST(ResolvedJob, SharesItsEditorWithCopies) {
  const ResolvedJob job = resolved_from("editor: {method: rome, layers: [3]}\n");
  const ResolvedJob copy = job;
  EXPECT_EQ(copy.editor, job.editor);
}

TEST(ResolvedJob, HasNoEditorAndNeedsNothingWhereNoneIsAskedFor) {
  const ResolvedJob job = resolved_from("", JobPurpose::kEvaluate);
  EXPECT_FALSE(job.has_editor());
  EXPECT_EQ(job.editor, nullptr);
  EXPECT_FALSE(job.needs.statistics);
}

TEST(ResolvedJob, TakesAnotherEditorWithAllItsOptions) {
  JobConfig plain;
  plain.model = "m";
  const ResolvedJob job = with_editor(plain, parse_config("{method: ft-m, modules: {down: [2]}}", "test"), "test");
  EXPECT_EQ(job.model, "m");
  EXPECT_EQ(job.method, "ft-m");
  EXPECT_NE(job.editor_options.find("steps"), nullptr);
  EXPECT_EQ(to_yaml(*job.resolved.find("editor")), to_yaml(job.editor_options));
  const ConfigTree wrong = parse_config("{method: ft-m, modules: {down: [2]}, step: 3}", "test");
  EXPECT_EQ(testing::config_error([&] {
              with_editor(plain, wrong, "tune.search: step 3");
            }).find("tune.search: step 3:1: editor.step: unknown key"),
            0u);
}

TEST(Overrides, OfAnEditorAreLeftOutForAnotherMethod) {
  const std::vector<std::string> given{"run.dtype=f32", "editor.values.lr=0.1", "editor={method: rome, layers: [2]}",
                                       "model=editor.gguf"};
  EXPECT_EQ(overrides_for_method(given, "memit"),
            (std::vector<std::string>{"run.dtype=f32", "model=editor.gguf", "editor.method=memit"}));
}

TEST(ResolvedJob, OfEverySeedThatIsComparedIsTheJobWithThisSeed) {
  const std::string editor = "{method: rome, layers: [3]}";
  const CompareConfig compared = parse_compare_job(
      resolving_tree(cat("run: {seed: 5}\nseeds: 3\ncompare: {a: ", editor, "}")), "/jobs", "job", {});
  ASSERT_EQ(compared.seeds(), 3);
  for (size_t i = 0; i < 3; ++i) {
    const ResolvedJob alone = resolved_from(cat("run: {seed: ", 5 + i, "}\neditor: ", editor));
    const ResolvedJob& job = compared.methods.front().jobs[i];
    EXPECT_EQ(job.run.seed, 5 + i);
    EXPECT_EQ(to_yaml(job.resolved), to_yaml(alone.resolved));
  }
}

}  // namespace
}  // namespace lancet
