// Edits that are data, added again and taken back: on fake devices, on ranks, of every method.
#include <fstream>

#include "lancet/core/error.h"
#include "lancet/history/apply_job.h"
#include "lancet/history/undo_job.h"
#include "stream_jobs.h"
#include "support/fake_device.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;
using testing::kMemit;
using testing::run_ranks;
using testing::set_fake_device_count;
using testing::StreamJobs;

const std::vector<std::pair<std::string, std::string>> kAppliedMethods{
    {"memit", kMemit},
    {"automatic", "{method: memit, layers: [0, 1], values: {steps: 3, lr: 0.1, batch: 2}, contexts: ['{}']}"},
    {"alphaedit",
     "{method: alphaedit, layers: [0, 1], null_space_below: 0.5, ridge: 10, values: {steps: 3, lr: 0.1, batch: 2}, "
     "contexts: ['{}']}"},
    {"emmet",
     "{method: emmet, layers: [0, 1], covariance_weight: 20, slack: 0.1, values: {steps: 3, lr: 0.1, batch: 2}, "
     "contexts: ['{}']}"},
    {"rome", "{method: rome, layers: [1], values: {steps: 3, lr: 0.1, batch: 2}, contexts: ['{}']}"},
    {"nse",
     "{method: nse, layers: [0, 1], covariance_weight: 20, residual_above: 0, residual_below: 1e9, passes: 2, "
     "values: {steps: 3, lr: 0.1, batch: 2}, contexts: ['{}']}"},
    {"ultraedit", "{method: ultraedit}"},
    {"budgeted", "{method: memit, text_budget: 1e-4, layers: [0, 1], values: {steps: 3, lr: 0.1}, contexts: ['{}']}"},
    {"ft-m", "{method: ft-m, steps: 3}"},
    {"rect",
     "{method: memit, layers: [0, 1], covariance_weight: 20, rect: {keep: 0.4}, values: {steps: 3, lr: 0.1, batch: 2}, "
     "contexts: ['{}']}"},
    {"prune",
     "{method: memit, layers: [0, 1], covariance_weight: 1e-3, prune: {log_base: 1.2}, values: {steps: 3, lr: 0.1, "
     "batch: 2}, contexts: ['{}']}"},
};

class AppliedJobs : public StreamJobs {
 protected:
  static std::string with_method(const std::string& name, const std::string& overrides) {
    return name == "ultraedit" || name == "ft-m" ? overrides + " statistics=null" : overrides;
  }
  std::string file(const std::string& output, const char* name = "model.safetensors") const {
    return bytes(fs::path(output) / name);
  }
  fs::path place(const std::string& output) const { return folder_ / output; }

  MadeOutput apply(const std::string& from, const std::string& to, std::vector<std::string> overrides = {}) const {
    return run_apply_job({.edits = place(from), .out = place(to), .overrides = std::move(overrides)}, alone());
  }
  MadeOutput undo(const std::string& from, const std::string& to, EditSelection selection,
                  std::optional<UndoMode> mode = {}) const {
    return run_undo_job({.output = place(from), .out = place(to), .selection = std::move(selection), .mode = mode},
                        alone());
  }
};

class EachMethodAsData : public AppliedJobs,
                         public ::testing::WithParamInterface<std::pair<std::string, std::string>> {};

TEST_P(EachMethodAsData, IsAppliedTakenBackAndReplayedToTheBit) {
  const auto& [name, editor] = GetParam();
  edit("whole", with_method(name, ""), editor);
  apply("whole", "again");
  EXPECT_EQ(file("again"), file("whole"));
  edit("half", with_method(name, "requests.limit=4"), editor);
  EXPECT_NE(file("half"), file("whole"));
  const MadeOutput undone = undo("whole", "less", {.last_batches = 2});
  EXPECT_EQ(undone.undone->mode, UndoMode::kLast);
  EXPECT_EQ(undone.report.requests.size(), 4u);
  EXPECT_EQ(file("less"), file("half"));
  // two batches again, from where the first two stand
  edit("rest", with_method(name, "requests.skip=4 continue_from=less"), editor);
  EXPECT_EQ(file("rest"), file("whole"));
  edit("seven", with_method(name, "requests.limit=7"), editor);
  const std::string last =
      EditHistory::load(place("whole") / kEditsFolder, tiny_.config).journal().requests().back().id;
  undo("whole", "replayed", {.ids = {last}}, UndoMode::kReplay);
  EXPECT_EQ(file("replayed"), file("seven"));
}

INSTANTIATE_TEST_SUITE_P(Methods, EachMethodAsData, ::testing::ValuesIn(kAppliedMethods), [](const auto& method) {
  std::string name = method.param.first;
  std::erase(name, '-');
  return name;
});

TEST_F(AppliedJobs, GiveTheSameBytesOnDevicesAndRanks) {
  edit("whole");
  set_fake_device_count(3);
  for (const char* devices : {"[fake:0]", "[fake:0, fake:1]", "[fake:0, fake:1, fake:2]", "[fake:0, cpu]"}) {
    apply("whole", "again", {std::string("run.devices=") + devices, "output.replace=true"});
    EXPECT_EQ(file("again"), file("whole")) << devices;
    fs::remove_all(place("again"));
  }
  run_ranks(3, [&](Communicator& ranks) {
    run_apply_job({.edits = place("whole"), .out = place("on_ranks")}, ranks);
    run_undo_job({.output = place("whole"), .out = place("less_on_ranks"), .selection = {.last_batches = 1}}, ranks);
  });
  EXPECT_EQ(file("on_ranks"), file("whole"));
  edit("six", "requests.limit=6");
  EXPECT_EQ(file("less_on_ranks"), file("six"));
}

/// An edit on three ranks has sums of its own: a replay there is compared with edits there.
TEST_F(AppliedJobs, ReplaysOnRanksAreEditsOnRanks) {
  edit("whole");
  edit("six", "requests.limit=6");
  const std::vector<EditRequest> requests = history("whole").journal().requests();
  run_ranks(3, [&](Communicator& ranks) {
    const auto replay = [&](const std::string& to, std::vector<std::string> ids) {
      run_undo_job(
          {.output = place("whole"), .out = place(to), .selection = {.ids = std::move(ids)}, .mode = UndoMode::kReplay},
          ranks);
    };
    replay("without_the_first", {requests[0].id, requests[1].id});
    run_edit_job(job("behind", kMemit, "requests.skip=2"), ranks);
    replay("without_the_last", {requests[7].id});
    run_edit_job(job("seventh", kMemit, "requests.skip=6 requests.limit=1 continue_from=six"), ranks);
  });
  EXPECT_EQ(file("without_the_first"), file("behind"));
  EXPECT_EQ(file("without_the_last"), file("seventh"));
}

TEST_F(AppliedJobs, ReplayNeedsWhatTheBatchesBeforeItLeft) {
  edit("whole", "output.state=false");
  const std::vector<EditRequest> requests = history("whole").journal().requests();
  try {
    undo("whole", "less", {.ids = {requests.back().id}}, UndoMode::kReplay);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("solved/"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(fs::exists(place("less")));
  undo("whole", "less", {.ids = {requests[0].id, requests[1].id}}, UndoMode::kReplay);  // nothing stands before it
  edit("behind", "requests.skip=2 output.state=false");
  EXPECT_EQ(file("less"), file("behind"));
}

TEST_F(AppliedJobs, SayWhereTheBytesDiffer) {
  edit("whole");
  // a journal that expects other bytes, chained as it should be
  EditHistory history = EditHistory::load(place("whole") / kEditsFolder, tiny_.config);
  std::vector<WeightHash> weights = history.journal().measured_weights();
  ASSERT_FALSE(weights.empty());
  weights.front().hash = std::string(32, '0');
  history.journal().add_measure("others", weights, history.journal().measured());
  fs::create_directories(place("other") / kEditsFolder);
  history.write(place("other") / kEditsFolder, tiny_.config);
  fs::copy_file(place("whole") / "job.yaml", place("other") / "job.yaml");
  const MadeOutput made = apply("other", "again");
  ASSERT_FALSE(made.report.outcome.warnings.empty());
  EXPECT_NE(made.report.outcome.warnings.back().find("its bytes are not those that the edit wrote"), std::string::npos);
  EXPECT_EQ(file("again"), file("whole"));
}

TEST_F(AppliedJobs, KeepAKilledReplaysBatches) {
  edit("whole");
  const std::string first =
      EditHistory::load(place("whole") / kEditsFolder, tiny_.config).journal().requests().front().id;
  testing::Interrupted ranks("solve", 5);
  const UndoJob job{
      .output = place("whole"), .out = place("less"), .selection = {.ids = {first}}, .mode = UndoMode::kReplay};
  EXPECT_THROW(run_undo_job(job, ranks), std::runtime_error);
  EXPECT_FALSE(fs::exists(place("less")));
  const MadeOutput made = run_undo_job(job, alone());
  EXPECT_GT(made.report.resumed_batches, 0);
  undo("whole", "at_once", {.ids = {first}}, UndoMode::kReplay);
  EXPECT_EQ(file("less"), file("at_once"));
}

}  // namespace
}  // namespace lancet
