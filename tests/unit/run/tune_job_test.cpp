// A tune in the process of an edit: the edit does not notice.
#include "lancet/run/tune_job.h"

#include <gtest/gtest.h>

#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/run/edit_job.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::TempDir;
using testing::TinyModel;

std::string requests_yaml() {
  std::string list;
  for (const EditRequest& request : testing::some_requests(4))
    list += cat("    - {prompt: '", request.prompt.text, "', subject: '", request.subject, "', target: '",
                request.target, "', target_true: '", *request.target_true, "'}\n");
  return list;
}

JobConfig parse(const TinyModel& tiny, const TempDir& folder, const std::string& editor, const std::string& out,
                JobPurpose purpose) {
  const std::string yaml =
      cat("model: ", tiny.folder.path().string(), "\nrequests:\n", requests_yaml(), "editor: ", editor,
          "\nstatistics: {corpus: corpus.txt, tokens: 600, cache: cache}\noutput: {dir: ", out,
          "}\nevaluate: [efficacy]\nrun: {dtype: f32, devices: cpu}\ntune:\n  requests:\n", requests_yaml(),
          "  search: {values.lr: [0.05, 0.1], covariance_weight: [5, 20], layers: [[0, 1], [1, 2]]}\n  trials: 6\n",
          "  objective: [efficacy_prob, efficacy_argmax]\n");
  return parse_job(parse_config(yaml, "test"), folder.path(), "test", purpose);
}

TEST(TuneJob, LeavesEditsInItsProcessAsTheyWere) {
  const TinyModel tiny;
  const TempDir folder;
  testing::write_corpus(folder.path(), 60);
  const std::string editor =
      "{method: memit, layers: [1, 2], covariance_weight: 20, values: {steps: 4, lr: 0.1}, "
      "contexts: {generate: 2, length: 6}}";
  const auto edited = [&](const std::string& out) {
    run_edit_job(parse(tiny, folder, editor, out, JobPurpose::kEdit), alone());
    return read_text_file(folder / out / "model.safetensors", "model");
  };
  const std::string before = edited("before");
  const TuneReport report = run_tune_job(parse(tiny, folder, editor, "unused", JobPurpose::kTune));
  ASSERT_EQ(report.trials.size(), 6u);
  EXPECT_FALSE(std::filesystem::exists(folder / "unused"));
  EXPECT_EQ(edited("after"), before);
}

TEST(TuneJob, RunsEachTrialOnTheUneditedModel) {
  const TinyModel tiny;
  const TempDir folder;
  testing::write_corpus(folder.path(), 60);
  const std::string editor = "{method: memit, layers: [1, 2], covariance_weight: 20, values: {steps: 4, lr: 0.1}}";
  JobConfig job = parse(tiny, folder, editor, "unused", JobPurpose::kTune);
  job.tune->halve = 100;  // one round
  const TuneReport all = run_tune_job(job);
  for (const Trial& trial : all.trials) {
    ASSERT_EQ(trial.scores.size(), 1u);
    if (trial.choice.empty()) continue;
    JobConfig single = parse(tiny, folder, editor, "unused", JobPurpose::kTune);
    single.tune->search.clear();
    for (const auto& [key, value] : trial.choice) single.tune->search.push_back({key, {value}});
    const TuneReport alone_report = run_tune_job(single);
    for (const Trial& other : alone_report.trials)
      if (!other.choice.empty()) {
        EXPECT_EQ(other.scores.back().of, trial.scores.back().of) << choice_text(trial);
      }
  }
}

}  // namespace
}  // namespace lancet
