// Whole jobs from a job file on fake devices: the exported model is the one that the CPU makes.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/models/tensor_io.h"
#include "lancet/pipeline/edit_job.h"
#include "support/edit_setup.h"
#include "support/fake_device.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TempDir;
using testing::TinyModel;

constexpr testing::TinyShape kShape{.n_layers = 8, .d_model = 64, .d_ffn = 128};

struct JobRun {
  EditReport report;
  std::map<std::string, Tensor> weights;
};

/// `devices`: as in a job file.
JobRun run_job(const TinyModel& tiny, const std::string& devices, const std::string& more = "") {
  const TempDir folder;
  testing::write_corpus(folder.path(), 60);
  std::string requests;
  for (const EditRequest& request : testing::some_requests(5))
    requests += cat("  - {prompt: '", request.prompt.text, "', subject: '", request.subject, "', target: '",
                    request.target, "'}\n");
  const std::string yaml =
      cat("model: ", tiny.folder.path().string(), "\nrequests:\n", requests,
          "editor: {method: memit, layers: [1, 2, 3], covariance_weight: 20, values: {steps: 6, lr: 0.1, batch: 2}, ",
          "contexts: {generate: 2, length: 6}}\n", "statistics: {corpus: corpus.txt, tokens: 600, cache: cache, ",
          "save_every_s: 0}\noutput: {dir: out}\nevaluate: [efficacy, generation]\n",
          "run: {dtype: f64, devices: ", devices, more, "}\n");
  const ResolvedJob job = parse_job(parse_config(yaml, "test"), folder.path(), "test", JobPurpose::kEdit);
  JobRun run{run_edit_job(job, alone()), {}};
  const Checkpoint edited = Checkpoint::open(folder / "out");
  for (const std::string& name : edited.tensor_names()) run.weights[name] = to_tensor(edited.view(name)).clone();
  return run;
}

void expect_equal_job(const JobRun& run, const JobRun& cpu, const std::string& what) {
  EXPECT_EQ(run.report.contexts, cpu.report.contexts) << what;
  EXPECT_EQ(run.report.after.continuations, cpu.report.after.continuations) << what;
  for (const auto& [name, tally] : cpu.report.after.totals)
    EXPECT_EQ(run.report.after.totals.at(name).sum, tally.sum) << what << ": " << name;
  ASSERT_EQ(run.weights.size(), cpu.weights.size());
  for (const auto& [name, weight] : cpu.weights)  // rounded to the f32 they are stored in
    EXPECT_LE(nmse(run.weights.at(name), weight), 1e-13) << what << ": " << name;
  for (size_t i = 0; i < cpu.report.outcome.requests.size(); ++i)
    EXPECT_NEAR(*run.report.outcome.requests[i].final_loss, *cpu.report.outcome.requests[i].final_loss, 1e-9) << what;
}

TEST(JobOnFakeDevices, ExportsWhatTheCpuExports) {
  const TinyModel tiny(kShape);
  testing::fake_devices(testing::kMaxFakeDevices);
  const JobRun cpu = run_job(tiny, "cpu");
  for (const int count : {1, 2, 3, 5, 8}) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.push_back(cat("'fake:", i, "'"));
    const std::string devices = cat("[", join(names), "]");
    const JobRun run = run_job(tiny, devices);
    expect_equal_job(run, cpu, devices);
    if (count > 1) {
      EXPECT_NE(run.report.devices.find(cat("fake:", count - 1, ": layers")), std::string::npos);
    }
  }
  expect_equal_job(run_job(tiny, "['fake:0', 'fake:1']", ", balance: work"), cpu, "by work");
}

TEST(JobOnFakeDevices, LayersThatDoNotFitGoToTheCpu) {
  const TinyModel tiny(kShape);
  testing::fake_devices(1);
  const JobRun cpu = run_job(tiny, "cpu");
  const std::string there = ", solve_on: device";
  const JobRun after = run_job(tiny, "['fake:0=8MB', cpu]", there),
               before = run_job(tiny, "[cpu, 'fake:0=12MB']", there);
  EXPECT_NE(after.report.devices.find("cpu: layers"), std::string::npos) << after.report.devices;
  EXPECT_EQ(before.report.devices.find("cpu: layers 0-"), 0u) << before.report.devices;
  expect_equal_job(after, cpu, after.report.devices);
  expect_equal_job(before, cpu, before.report.devices);
}

TEST(JobOnFakeDevices, SolvesOnTheHostExportTheSameBits) {
  const TinyModel tiny(kShape);
  testing::fake_devices(2);
  const JobRun there = run_job(tiny, "['fake:0', 'fake:1']", ", solve_on: device");
  EXPECT_EQ(there.report.devices.find("solves"), std::string::npos) << there.report.devices;
  const JobRun run = run_job(tiny, "['fake:0', 'fake:1']", ", solve_on: host");
  EXPECT_NE(run.report.devices.find("; solves on cpu"), std::string::npos) << run.report.devices;
  EXPECT_EQ(run.report.after.continuations, there.report.after.continuations);
  for (const auto& [name, weight] : there.weights) EXPECT_TRUE(run.weights.at(name).equal(weight)) << name;
}

TEST(JobOnFakeDevices, WhatDoesNotFitIsRefusedBeforeAnythingIsLoaded) {
  const TinyModel tiny(kShape);
  testing::fake_devices(2);
  testing::reset_fake_peaks();
  const int64_t before = testing::fake_bytes_peak(0);
  EXPECT_THROW(run_job(tiny, "['fake:0=1MB', 'fake:1=1MB']"), PlacementError);
  EXPECT_EQ(testing::fake_bytes_peak(0), before);
}

}  // namespace
}  // namespace lancet
