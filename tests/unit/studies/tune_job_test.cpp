// A tune in the process of an edit: the edit does not notice.
#include "lancet/studies/tune_job.h"

#include <gtest/gtest.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/plan/job_plan.h"
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

ResolvedJob parse(const TinyModel& tiny, const TempDir& folder, const std::string& editor, const std::string& out,
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
  ResolvedJob job = parse(tiny, folder, editor, "unused", JobPurpose::kTune);
  job.tune->halve = 100;  // one round
  const TuneReport all = run_tune_job(job);
  for (const Trial& trial : all.trials) {
    ASSERT_EQ(trial.scores.size(), 1u);
    if (trial.choice.empty()) continue;
    ResolvedJob single = parse(tiny, folder, editor, "unused", JobPurpose::kTune);
    single.tune->search.clear();
    for (const auto& [key, value] : trial.choice) single.tune->search.push_back({key, {value}});
    const TuneReport alone_report = run_tune_job(single);
    for (const Trial& other : alone_report.trials)
      if (!other.choice.empty()) {
        EXPECT_EQ(other.scores.back().of, trial.scores.back().of) << choice_text(trial);
      }
  }
}

/// What training the down projections of `layers` takes on the host.
int64_t planned_bytes(const TinyModel& tiny, const std::string& layers) {
  ResolvedJob job = testing::job_with_editor(cat("{method: ft-m, modules: {down: ", layers, "}, steps: 1}"));
  job.run.dtype = DType::kF32;
  std::vector<std::string> assumptions;
  const std::vector<EditRequest> requests = testing::some_requests(4);
  const Workload work = edit_work(job, tiny.config, {tiny.tokenizer.get(), requests, {}}, assumptions);
  return plan_job(tiny.config, work, {{{Placement::host()}}}, Balance::kMemory).stages.front().total();
}

/// Has memory for the first trial, and not for the second.
TEST(TuneJob, PlansTheLayersOfEveryTrial) {
  const TinyModel tiny({.n_layers = 4, .d_model = 128, .d_ffn = 1024});
  const TempDir folder;
  const int64_t first = planned_bytes(tiny, "[2]"), all = planned_bytes(tiny, "[0, 1, 2, 3]");
  ASSERT_GT(all, first + (int64_t{8} << 20));
  const auto tune = [&](const std::string& search) {
    const std::string yaml = cat("model: ", tiny.folder.path().string(), "\nrequests:\n", requests_yaml(),
                                 "editor: {method: ft-m, modules: {down: [2]}, steps: 1}\nevaluate: [efficacy]\n",
                                 "run: {dtype: f32, threads: 1, devices: 'cpu=", (first + all) / 2, "B'}\n",
                                 "tune: {search: ", search, ", trials: 2, objective: [efficacy_prob]}\n");
    return run_tune_job(parse_job(parse_config(yaml, "test"), folder.path(), "test", JobPurpose::kTune));
  };
  EXPECT_EQ(tune("{lr: [1.0e-3]}").trials.size(), 2u);
  try {
    tune("{modules: [{down: [0, 1, 2, 3]}]}");
    ADD_FAILURE() << "the second trial does not fit";
  } catch (const PlacementError& error) {
    EXPECT_NE(std::string(error.what()).find("training"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace lancet
