// Jobs of several batches: the same edits as batch by batch by hand, and as of a job that was killed.
#include "stream_jobs.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;
using testing::Fault;
using testing::flip_a_bit;
using testing::Json;
using testing::kMemit;
using testing::kWeight;
using testing::message_of;
using testing::StreamJobs;

TEST_F(StreamJobs, MeasureEachBatchAsAJobThatEndsAfterItDoes) {
  const EditReport stream = edit("stream");
  ASSERT_EQ(stream.batches.size(), 4u);
  for (const int64_t done : {1, 2, 3, 4}) {
    const EditReport part = edit(cat("part", done), cat("requests.limit=", 2 * done));
    const BatchReport& batch = stream.batches[static_cast<size_t>(done - 1)];
    Tallies own, first;
    own["efficacy_argmax"] = first["efficacy_argmax"] = own["efficacy_prob"] = first["efficacy_prob"] = {};
    for (const int64_t i : {2 * done - 2, 2 * done - 1})
      for (auto& [name, tally] : own) tally.sum += part.after.requests[static_cast<size_t>(i)].at(name).sum;
    for (const size_t i : {0, 1})
      for (auto& [name, tally] : first) tally.sum += part.after.requests[i].at(name).sum;
    for (const auto& [name, tally] : own) {
      EXPECT_EQ(batch.right_after->at(name).sum, tally.sum) << done << name;
      EXPECT_EQ(batch.right_after->at(name).count, 2);
      EXPECT_EQ(batch.first_batch->at(name).sum, first.at(name).sum) << done << name;
    }
    for (const auto& [name, growth] : batch.growth) {
      const auto loss = std::find_if(part.rounding.begin(), part.rounding.end(),
                                     [&, weight = name](const auto& each) { return each.first == weight; });
      ASSERT_NE(loss, part.rounding.end());
      EXPECT_NEAR(growth, loss->second.delta_norm / loss->second.weight_norm, 1e-9);
    }
    EXPECT_EQ(batch.growth.size(), 2u);
  }
  const Json file = report("stream");
  EXPECT_EQ(file["batches"].size(), 4u);
  EXPECT_EQ(file["batches"][1]["requests"], (Json{"2", "3"}));
  EXPECT_TRUE(file["metrics"]["efficacy_prob"]["right_after"].is_number());
  EXPECT_EQ(edit("seldom", "schedule.measure_every=0").batches[0].right_after, std::nullopt);
  EXPECT_TRUE(report("seldom")["metrics"]["efficacy_prob"]["right_after"].is_null());
  expect_close("seldom", "stream", 0);
}

TEST_F(StreamJobs, EditLaterBatchesOnTheWeightsOfEarlierOnes) {
  edit("stream", "requests.limit=4");
  edit("together", "requests.limit=4 schedule.batch=0");
  const Tensor stream = changes("stream").at(kWeight), together = changes("together").at(kWeight);
  EXPECT_GT((stream - together).norm().item<double>(), 1e-3 * together.norm().item<double>());
  EXPECT_EQ(column_ids("stream"), (std::vector<std::string>{"0", "1", "2", "3"}));
}

TEST_F(StreamJobs, KeepTheNamesOfShuffledRequests) {
  const EditReport shuffled = edit("shuffled", "schedule.order=shuffled schedule.batch=3");
  std::vector<std::string> order;
  for (const BatchReport& batch : shuffled.batches)
    for (const int64_t index : batch.requests) order.push_back(shuffled.requests[static_cast<size_t>(index)].id);
  EXPECT_NE(order, (std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7"}));
  EXPECT_EQ(column_ids("shuffled"), order);
  // as a file in that order gives
  std::ofstream lines(folder_ / "ordered.jsonl");
  for (const BatchReport& batch : shuffled.batches)
    for (const int64_t index : batch.requests)
      lines << to_json_line(shuffled.requests[static_cast<size_t>(index)]) << "\n";
  lines.close();
  const EditReport ordered = edit("ordered", "requests.path=ordered.jsonl schedule.batch=3");
  expect_close("ordered", "shuffled", 0);
  EXPECT_EQ(edit_files("ordered"), edit_files("shuffled"));
  for (size_t i = 0; i < order.size(); ++i) {
    const auto index = static_cast<size_t>(std::stoi(order[i]));
    EXPECT_EQ(shuffled.outcome.requests[index].final_loss, ordered.outcome.requests[i].final_loss);
    EXPECT_EQ(shuffled.after.requests[index].at("efficacy_prob").sum,
              ordered.after.requests[i].at("efficacy_prob").sum);
  }
}

TEST_F(StreamJobs, GoOnAfterTheLastBatchOfAnInterruptedRun) {
  const EditReport whole = edit("whole");
  edit_until("out", 2 * 2 + 1);  // two layers a batch
  EXPECT_TRUE(fs::exists(folder_ / "out.unfinished" / "progress" / "progress.json"));
  const EditReport resumed = edit("out");
  EXPECT_EQ(resumed.resumed_batches, 2);
  EXPECT_EQ(bytes("out/model.safetensors"), bytes("whole/model.safetensors"));
  EXPECT_EQ(edit_files("out"), edit_files("whole"));
  EXPECT_EQ(journal("out"), journal("whole"));
  EXPECT_EQ(bytes("out/requests.jsonl"), bytes("whole/requests.jsonl"));
  Json got = report("out"), wanted = report("whole");
  for (Json* each : {&got, &wanted}) {
    for (const char* key : {"seconds", "peak_bytes", "stage_peak_bytes", "values", "schedule", "statistics"})
      each->erase(key);
    for (Json& batch : (*each)["batches"]) batch.erase("seconds");
    for (Json& batch : (*each)["journal"]["batches"]) batch.erase("when");
  }
  EXPECT_EQ(got, wanted);
  EXPECT_FALSE(fs::exists(folder_ / "out.unfinished"));
}

/// All batches are done, and the run ends before there is an output.
TEST_F(StreamJobs, GoOnAfterTheLastBatchOfAll) {
  edit("whole");
  edit("first", "requests.limit=4");
  for (const char* stage : {"evaluate after", "export"})
    for (const auto& [overrides, count] :
         {std::pair{"", 4}, {"requests.skip=4 continue_from=first", 2}, {"schedule.save_every=3", 4}}) {
      fs::remove_all(folder_ / "out");
      edit_until("out", {stage, 1}, overrides);
      EXPECT_EQ(edit("out", overrides).resumed_batches, count) << stage << overrides;
      EXPECT_EQ(bytes("out/model.safetensors"), bytes("whole/model.safetensors")) << stage << overrides;
      EXPECT_EQ(edit_files("out"), edit_files("whole")) << stage << overrides;
      if (std::string(overrides).empty()) {
        EXPECT_EQ(journal("out"), journal("whole")) << stage;
      }
    }
}

TEST_F(StreamJobs, NeverGoOnFromAnotherJobsProgress) {
  const auto resumed_with = [&](const std::string& first, const std::string& then) {
    fs::remove_all(folder_ / "out");
    fs::remove_all(folder_ / "out.unfinished");
    edit_until("out", 5, first);
    return edit("out", then).resumed_batches;
  };
  EXPECT_EQ(resumed_with("", ""), 2);
  EXPECT_EQ(resumed_with("", "editor.covariance_weight=30"), 0);
  EXPECT_EQ(resumed_with("", "editor.values.steps=4"), 0);
  EXPECT_EQ(resumed_with("", "schedule.batch=3"), 0);
  EXPECT_EQ(resumed_with("", "requests.skip=1"), 0);
  EXPECT_EQ(resumed_with("", "schedule.order=shuffled"), 0);
  EXPECT_EQ(resumed_with("", "statistics.tokens=2000"), 0);
  EXPECT_EQ(resumed_with("", "evaluate=[]"), 0);
  EXPECT_EQ(resumed_with("", "requests.limit=6"), 2) << "the first batches are the same";
  EXPECT_EQ(resumed_with("requests.limit=6", ""), 2);
  EXPECT_EQ(resumed_with("schedule.save_every=3", ""), 0) << "nothing was saved after the second";
}

/// Damages each file of the progress of a run that ended after its second batch.
class DamagedProgress : public StreamJobs {
 protected:
  std::vector<std::string> progress_files() const {
    edit_until("out", 5);
    std::vector<std::string> names;
    const fs::path progress = folder_ / "out.unfinished" / "progress";
    for (const auto& entry : fs::recursive_directory_iterator(progress))
      if (entry.is_regular_file() && entry.path().filename() != "lancet-manifest.json")
        names.push_back(fs::relative(entry.path(), progress).string());
    fs::remove_all(folder_ / "out.unfinished");
    std::vector<std::string> kinds;
    for (const std::string& name : names) kinds.push_back(name.substr(0, name.find('/')));
    std::sort(kinds.begin(), kinds.end());
    EXPECT_EQ(kinds,
              (std::vector<std::string>{"changes", "changes", "journal.jsonl", "progress.json", "solved", "solved"}));
    return names;
  }
};

TEST_F(DamagedProgress, IsNotGoneOnFrom) {
  const EditReport whole = edit("whole");
  for (const std::string& name : progress_files()) {
    fs::remove_all(folder_ / "out");
    edit_until("out", 5);
    flip_a_bit(folder_ / "out.unfinished" / "progress" / name);
    EXPECT_EQ(edit("out").resumed_batches, 0) << name;
    EXPECT_EQ(bytes("out/model.safetensors"), bytes("whole/model.safetensors")) << name;
    EXPECT_EQ(edit_files("out"), edit_files("whole")) << name;
  }
}

/// What was damaged is not carried over into what is saved next.
TEST_F(DamagedProgress, IsNotInWhatIsSavedNext) {
  for (const std::string& name : progress_files()) {
    fs::remove_all(folder_ / "out");
    edit_until("out", 5);
    flip_a_bit(folder_ / "out.unfinished" / "progress" / name);
    edit_until("out", 5);
    EXPECT_EQ(edit("out").resumed_batches, 2) << name;
  }
}

TEST_F(StreamJobs, GiveOnSeveralRanksWhatOneGives) {
  edit("single");
  edit("first", "requests.limit=4");
  for (const int64_t size : {2, 3}) {
    const std::string output = cat("ranks", size), continued = cat("continued", size);
    std::vector<EditReport> reports(static_cast<size_t>(size));
    testing::run_ranks(size, [&](Communicator& communicator) {
      reports[static_cast<size_t>(communicator.rank())] = run_edit_job(job(output, kMemit, ""), communicator);
      run_edit_job(job(continued, kMemit, "requests.skip=4 continue_from=first"), communicator);
    });
    expect_close(output, "single", 1e-9);
    expect_close(continued, "single", 1e-9);
    for (const EditReport& each : reports) {
      ASSERT_EQ(each.batches.size(), 4u);
      EXPECT_EQ(each.batches[2].right_after->at("efficacy_prob").sum,
                reports[0].batches[2].right_after->at("efficacy_prob").sum);
    }
  }
}

TEST_F(StreamJobs, GoOnOnSeveralRanksFromWhatOneHadFinished) {
  edit("whole");
  edit_until("out", 5);
  std::vector<EditReport> reports(3);
  testing::run_ranks(3, [&](Communicator& communicator) {
    reports[static_cast<size_t>(communicator.rank())] = run_edit_job(job("out", kMemit, ""), communicator);
  });
  for (const EditReport& each : reports) EXPECT_EQ(each.resumed_batches, 2);
  expect_close("out", "whole", 1e-9);
}

TEST_F(StreamJobs, ARankThatCannotSaveEndsAll) {
  const testing::RankErrors errors = testing::try_ranks(
      2, [&](Communicator& communicator) { run_edit_job(job("out", kMemit, ""), communicator); }, Fault{0, "progress"});
  EXPECT_EQ(message_of(errors[0]), testing::kFaultMessage);
  EXPECT_EQ(message_of(errors[1]), cat("rank 0: progress: ", testing::kFaultMessage));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

}  // namespace
}  // namespace lancet
