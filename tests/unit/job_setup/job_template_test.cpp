#include "lancet/job_setup/job_template.h"

#include <gtest/gtest.h>

#include "lancet/core/error.h"
#include "lancet/io/files.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/job_setup/presets.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::TempDir;
using testing::TinyModel;

/// The template as a job that lies in /jobs.
ResolvedJob parse(const std::string& text) {
  ConfigTree tree = parse_config(text, "job.yaml");
  const JobSource source{"/jobs", "job.yaml"};
  apply_model_defaults(tree, source.base);
  apply_preset(tree, source);
  return parse_job(tree, source.base, source.name, JobPurpose::kEdit);
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(JobTemplate, RunsAsItIsWithTheMethodsOwnChoiceOfOptions) {
  const TinyModel tiny;
  const std::string text = make_job_template(open_model(tiny.folder.path(), {}), {});
  const ResolvedJob job = parse(text);
  EXPECT_EQ(job.model, tiny.folder.path());
  EXPECT_EQ(job.method, "memit");
  EXPECT_EQ(job.statistics->from, StatisticsFrom::kSelf);
  EXPECT_EQ(job.requests.inline_requests.size(), 2u);
  EXPECT_EQ(job.requests.inline_requests[0].target_true, "Paris");
  EXPECT_EQ(job.output->place.folder, "/jobs/edited");
  EXPECT_TRUE(has(text, "corpus: self    # the model writes text of 3000 tokens")) << text;
  EXPECT_TRUE(has(text, "no published ones are known for it")) << text;
  EXPECT_FALSE(has(text, "preset: auto ")) << text;
}

TEST(JobTemplate, HasPathsThatAreRelativeToWhereItWillLie) {
  const TinyModel tiny;
  const std::filesystem::path facts = tiny.folder / "facts.csv", job = tiny.folder / "jobs" / "job.yaml";
  write_text_file(facts, "prompt,subject,target\n{} is,a,b\n");
  const std::string text =
      make_job_template(open_model(tiny.folder.path(), {}), {.requests = facts, .out = {}, .job = job});
  EXPECT_TRUE(has(text, "\nmodel: \"..\"\n") || has(text, "\nmodel: ..\n")) << text;
  EXPECT_TRUE(has(text, "path: ../facts.csv ") || has(text, "path: \"../facts.csv\" ")) << text;
  EXPECT_FALSE(has(text, tiny.folder.path().string())) << text;
}

TEST(JobTemplate, NamesOptionsInCommentsThatAreTheDefaults) {
  const TinyModel tiny;
  const std::string text = make_job_template(open_model(tiny.folder.path(), {}), {});
  std::string with_options;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin) + 1;
    std::string line = text.substr(begin, end - begin);
    const bool is_option = line.starts_with("  # ") && has(line, ":") && !has(line, ", ") && !has(line, "    #");
    with_options += is_option ? "  " + line.substr(4) : line;
    begin = end;
  }
  EXPECT_TRUE(has(with_options, "\n  values:\n    steps: ")) << with_options;
  EXPECT_EQ(to_yaml(*parse(with_options).resolved.find("editor")), to_yaml(*parse(text).resolved.find("editor")));
}

TEST(JobTemplate, TakesWhatIsPublishedOrStandsInTheModelsFolder) {
  const ModelFiles demo = open_model(testing::demo_model_folder(), {});
  const TempDir folder;
  for (const char* file : {"config.json", "model.safetensors", "tokenizer.json"})
    std::filesystem::copy(demo.checkpoint.folder() / file, folder.path());
  const std::string published = make_job_template(open_model(folder.path(), {}), {});
  EXPECT_TRUE(has(published, "preset: auto     # published options: lancet presets demo-model-memit")) << published;
  EXPECT_TRUE(has(published, "\n  # from data/demo-model/lancet.yaml")) << published;
  EXPECT_EQ(parse(published).resolved.find("editor")->find("covariance_weight")->scalar, "300");
  const std::string own = make_job_template(demo, {});
  EXPECT_TRUE(has(own, "\n# editor: as ")) << own;
  EXPECT_FALSE(has(own, "\neditor:")) << own;
  EXPECT_EQ(parse(own).statistics->from, StatisticsFrom::kCorpus);
}

TEST(JobTemplate, TakesNothingThatWasFoundForOtherWeights) {
  const TempDir folder;
  for (const char* file : {"config.json", "model.safetensors", "tokenizer.json"})
    std::filesystem::copy(std::filesystem::path(testing::demo_model_folder()) / file, folder.path());
  std::string weights = read_text_file(folder / "model.safetensors", "weights");
  weights[weights.size() - 2] = static_cast<char>(weights[weights.size() - 2] ^ 1);  // a mantissa's low bits
  write_text_file(folder / "model.safetensors", weights);
  const std::string made = make_job_template(open_model(folder.path(), {}), {});
  EXPECT_FALSE(has(made, "preset: auto ")) << made;
  EXPECT_TRUE(has(made, "no published ones are known for it")) << made;
}

TEST(JobTemplate, TakesAFileOfFactsAndAFolder) {
  const TinyModel tiny;
  const TempDir folder;
  write_text_file(folder / "my facts.json", R"([{"prompt": "{} is in", "subject": "Rome", "target": "Spain"}])");
  const ModelFiles files = open_model(tiny.folder.path(), {});
  const ResolvedJob job =
      parse(make_job_template(files, {.requests = folder / "my facts.json", .out = folder / "a: b"}));
  EXPECT_EQ(load_requests(job.requests).requests.size(), 1u);
  EXPECT_EQ(job.output->place.folder, folder / "a: b");
  EXPECT_THROW(make_job_template(files, {.requests = folder / "none.json", .out = {}}), ConfigError);
}

}  // namespace
}  // namespace lancet
