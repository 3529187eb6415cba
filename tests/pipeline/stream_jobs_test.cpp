// Jobs of several batches: the same edits as batch by batch by hand, as of a job that was killed, and as of two jobs of
// which one goes on from the other.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/io/safetensors.h"
#include "lancet/job/edit_job.h"
#include "lancet/models/tensor_io.h"
#include "support/edit_setup.h"
#include "support/interrupted.h"
#include "support/thread_ranks.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;
using testing::Fault;
using testing::message_of;
using testing::TempDir;
using testing::TinyModel;
using Json = nlohmann::json;

constexpr const char* kMemit =
    "{method: memit, layers: [0, 1], covariance_weight: 20, history: true, values: {steps: 3, lr: 0.1, batch: 2}, "
    "contexts: {generate: 2, length: 6}}";
constexpr const char* kWeight = "model.layers.1.mlp.down_proj.weight";

/// Jobs on one tiny model, of up to 8 requests.
class StreamJobs : public ::testing::Test {
 protected:
  StreamJobs() {
    std::ofstream lines(folder_ / "requests.jsonl");
    for (const EditRequest& request : testing::some_requests(8)) lines << to_json_line(request) << "\n";
    testing::write_corpus(folder_.path(), 300);
  }

  /// `overrides`: separated by blanks.
  JobConfig job(const std::string& output, const std::string& editor, const std::string& overrides) const {
    const std::string text =
        cat("{model: ", tiny_.folder.path().string(), ", requests: {path: requests.jsonl}, editor: ", editor,
            ", statistics: {corpus: corpus.txt, tokens: 3000, cache: cache, ridge: 1e-3}, evaluate: [efficacy], ",
            "schedule: {batch: 2}, output: {dir: ", output, "}, run: {dtype: f64, seed: 3}}");
    ConfigTree tree = parse_config(text, "test");
    std::istringstream each(overrides);
    for (std::string assignment; each >> assignment;) apply_override(tree, assignment);
    return parse_job(tree, folder_.path(), "test", JobPurpose::kEdit);
  }

  EditReport edit(const std::string& output, const std::string& overrides = "",
                  const std::string& editor = kMemit) const {
    return run_edit_job(job(output, editor, overrides), alone());
  }

  /// The job, ended by a fault as it begins to solve for the `nth` time.
  void edit_until(const std::string& output, int64_t nth_solve, const std::string& overrides = "",
                  const std::string& editor = kMemit) const;

  /// The exact change of every weight, summed.
  std::map<std::string, Tensor> changes(const std::string& output) const {
    const SafetensorsReader file = SafetensorsReader::open(folder_ / output / "state" / "changes.safetensors");
    std::map<std::string, Tensor> sums;
    for (const TensorInfo& info : file.tensors()) {
      const std::string name = info.name.substr(0, info.name.find('/'));
      if (info.name.ends_with("/right")) continue;
      Tensor change = to_tensor(file.view(info.name)).clone();
      if (info.name.ends_with("/left"))
        change = change.matmul(to_tensor(file.view(info.name.substr(0, info.name.size() - 4) + "right")));
      sums[name] = sums.contains(name) ? sums[name] + change : change;
    }
    return sums;
  }

  std::string bytes(const fs::path& file) const {
    std::ifstream stream(folder_ / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  Json report(const std::string& output) const { return Json::parse(bytes(fs::path(output) / "report.json")); }

  void expect_close(const std::string& output, const std::string& expected, double bound) const {
    const auto got = changes(output), wanted = changes(expected);
    ASSERT_EQ(got.size(), wanted.size());
    for (const auto& [name, change] : wanted) {
      EXPECT_GT(change.norm().item<double>(), 0.0) << name;
      EXPECT_LE((got.at(name) - change).norm().item<double>(), bound * change.norm().item<double>()) << name;
    }
  }

  TinyModel tiny_;
  TempDir folder_;
};

void StreamJobs::edit_until(const std::string& output, int64_t nth_solve, const std::string& overrides,
                            const std::string& editor) const {
  testing::Interrupted ranks("solve", nth_solve);
  EXPECT_THROW(run_edit_job(job(output, editor, overrides), ranks), std::runtime_error);
  EXPECT_FALSE(fs::exists(folder_ / output));
}

TEST_F(StreamJobs, MeasureEachBatchAsAJobThatEndsBehindItDoes) {
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
  const Json delta = Json::parse(
      SafetensorsReader::open(folder_ / "stream" / "delta" / "delta.safetensors").metadata().at("requests"));
  EXPECT_EQ(delta, (Json{"0", "1", "2", "3"}));
}

TEST_F(StreamJobs, KeepTheNamesOfShuffledRequests) {
  const EditReport shuffled = edit("shuffled", "schedule.order=shuffled schedule.batch=3");
  std::vector<std::string> order;
  for (const BatchReport& batch : shuffled.batches)
    for (const int64_t index : batch.requests) order.push_back(shuffled.requests[static_cast<size_t>(index)].id);
  EXPECT_NE(order, (std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7"}));
  const SafetensorsReader delta = SafetensorsReader::open(folder_ / "shuffled" / "delta" / "delta.safetensors");
  EXPECT_EQ(Json::parse(delta.metadata().at("requests")), Json(order));
  // as a file in that order gives
  std::ofstream lines(folder_ / "ordered.jsonl");
  for (const BatchReport& batch : shuffled.batches)
    for (const int64_t index : batch.requests)
      lines << to_json_line(shuffled.requests[static_cast<size_t>(index)]) << "\n";
  lines.close();
  const EditReport ordered = edit("ordered", "requests.path=ordered.jsonl schedule.batch=3");
  expect_close("ordered", "shuffled", 0);
  for (size_t i = 0; i < order.size(); ++i) {
    const auto index = static_cast<size_t>(std::stoi(order[i]));
    EXPECT_EQ(shuffled.outcome.requests[index].final_loss, ordered.outcome.requests[i].final_loss);
    EXPECT_EQ(shuffled.after.requests[index].at("efficacy_prob").sum,
              ordered.after.requests[i].at("efficacy_prob").sum);
  }
}

TEST_F(StreamJobs, GoOnBehindTheLastBatchOfAnInterruptedRun) {
  const EditReport whole = edit("whole");
  edit_until("out", 2 * 2 + 1);  // two layers a batch
  EXPECT_TRUE(fs::exists(folder_ / "out.unfinished" / "progress" / "progress.json"));
  const EditReport resumed = edit("out");
  EXPECT_EQ(resumed.resumed_batches, 2);
  EXPECT_EQ(bytes("out/model.safetensors"), bytes("whole/model.safetensors"));
  EXPECT_EQ(bytes("out/delta/delta.safetensors"), bytes("whole/delta/delta.safetensors"));
  EXPECT_EQ(bytes("out/state/state.safetensors"), bytes("whole/state/state.safetensors"));
  EXPECT_EQ(bytes("out/requests.jsonl"), bytes("whole/requests.jsonl"));
  Json got = report("out"), wanted = report("whole");
  for (Json* each : {&got, &wanted}) {
    for (const char* key : {"seconds", "peak_bytes", "stage_peak_bytes", "values", "schedule", "statistics"})
      each->erase(key);
    for (Json& batch : (*each)["batches"]) batch.erase("seconds");
  }
  EXPECT_EQ(got, wanted);
  EXPECT_FALSE(fs::exists(folder_ / "out.unfinished"));
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
  EXPECT_EQ(resumed_with("schedule.save_every=3", ""), 0) << "nothing was saved behind the second";
}

/// Changes the last number of a file, or of a JSON document.
void flip_a_bit(const fs::path& file) {
  std::string bytes = read_text_file(file, "test");
  const size_t at = bytes.find_last_of("0123456789");
  char& changed = bytes[file.extension() == ".json" ? at : bytes.size() - 1];
  changed = static_cast<char>(changed ^ 1);
  write_text_file(file, bytes);
}

TEST_F(StreamJobs, NeverGoOnFromDamagedProgress) {
  const EditReport whole = edit("whole");
  for (const char* name : {"changes.safetensors", "state.safetensors", "progress.json"}) {
    fs::remove_all(folder_ / "out");
    edit_until("out", 5);
    flip_a_bit(folder_ / "out.unfinished" / "progress" / name);
    EXPECT_EQ(edit("out").resumed_batches, 0) << name;
    EXPECT_EQ(bytes("out/model.safetensors"), bytes("whole/model.safetensors")) << name;
  }
}

TEST_F(StreamJobs, GoOnFromAnEarlierJobAsIfThereWereOne) {
  edit("whole");
  edit("first", "requests.limit=4");
  const EditReport second = edit("second", "requests.skip=4 continue_from=first");
  EXPECT_EQ(second.earlier_edits, 4);
  expect_close("second", "whole", 1e-9);
  EXPECT_EQ(bytes("second/model.safetensors"), bytes("whole/model.safetensors"));
  EXPECT_EQ(bytes("second/delta/delta.safetensors"), bytes("whole/delta/delta.safetensors"));
  EXPECT_EQ(bytes("second/requests.jsonl"), bytes("whole/requests.jsonl"));
  EXPECT_EQ(report("second")["schedule"]["earlier_edits"], 4);
  // a third, and one that was killed on its way
  edit("two",
       "requests.skip=2 requests.limit=2 continue_from=" + (edit("one", "requests.limit=2"), std::string("one")));
  edit_until("rest", 3, "requests.skip=4 continue_from=two");
  EXPECT_EQ(edit("rest", "requests.skip=4 continue_from=two").resumed_batches, 1);
  EXPECT_EQ(bytes("rest/model.safetensors"), bytes("whole/model.safetensors"));
}

TEST_F(StreamJobs, KeepWhatTheFirstBatchChose) {
  constexpr const char* kAutomatic =
      "{method: memit, layers: [0, 1], history: true, values: {steps: 3, lr: 0.1, batch: 2}, contexts: ['{}']}";
  const auto chosen_by = [&](const std::string& output, const std::string& overrides) {
    edit(output, overrides, kAutomatic);
    return report(output)["chosen"];
  };
  const Json chosen = chosen_by("whole", "");
  ASSERT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen[0]["option"], "covariance_weight");
  EXPECT_EQ(chosen[0]["layer"], 0);
  EXPECT_EQ(chosen[1]["layer"], 1);
  EXPECT_NE(chosen_by("alone", "requests.skip=4"), chosen);
  // another job, and a run that was killed, have the same numbers, and the same bytes
  EXPECT_EQ(chosen_by("first", "requests.limit=4"), chosen);
  EXPECT_EQ(chosen_by("second", "requests.skip=4 continue_from=first"), chosen);
  EXPECT_EQ(bytes("second/model.safetensors"), bytes("whole/model.safetensors"));
  edit_until("out", 5, "", kAutomatic);
  EXPECT_EQ(edit("out", "", kAutomatic).resumed_batches, 2);
  EXPECT_EQ(report("out")["chosen"], chosen);
  EXPECT_EQ(bytes("out/state/state.safetensors"), bytes("whole/state/state.safetensors"));
  // what they go by is part of the state, a number of one's own is not
  const std::string third = "requests.skip=4 continue_from=first editor.covariance_weight";
  EXPECT_THROW(chosen_by("third", third + ".attained_share=0.5"), ConfigError);
  EXPECT_EQ(chosen_by("third", third + "=20").size(), 0u);
}

TEST_F(StreamJobs, NeverGoOnFromAnEarlierJobThatIsDamagedOrMixedWithAnother) {
  edit("first", "requests.limit=2");
  edit("other", "requests.skip=2 requests.limit=2");
  const auto continued = [&] {
    try {
      edit("second", "requests.skip=4 continue_from=first");
    } catch (const CheckpointError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  const fs::path state = folder_ / "first" / "state";
  for (const char* name : {"changes.safetensors", "state.safetensors"}) {
    const std::string intact = read_text_file(state / name, "test");
    flip_a_bit(state / name);
    const std::string message = continued();
    EXPECT_NE(message.find((state / name).string() + ": its content has not the hash"), std::string::npos) << message;
    EXPECT_NE(message.find("without continue_from"), std::string::npos) << message;
    fs::copy_file(folder_ / "other" / "state" / name, state / name, fs::copy_options::overwrite_existing);
    EXPECT_NE(continued(), "taken") << name << " of another output";
    write_text_file(state / name, intact);
  }
  for (const char* name : {"changes.safetensors", "state.safetensors"})
    fs::copy_file(folder_ / "other" / "state" / name, state / name, fs::copy_options::overwrite_existing);
  EXPECT_NE(continued().find("state/ was not written beside requests.jsonl"), std::string::npos);
}

struct Method {
  const char* name;
  const char* editor;
};

void PrintTo(const Method& method, std::ostream* out) { *out << method.name; }

class StreamMethods : public StreamJobs, public ::testing::WithParamInterface<Method> {};

/// Also where the method does something behind the last batch, or normalises by what went before.
TEST_P(StreamMethods, GoOnFromAnEarlierJobAsIfThereWereOne) {
  edit("whole", "", GetParam().editor);
  edit("first", "requests.limit=4", GetParam().editor);
  edit("second", "requests.skip=4 continue_from=first", GetParam().editor);
  expect_close("second", "whole", 1e-9);
  EXPECT_EQ(bytes("second/model.safetensors"), bytes("whole/model.safetensors"));
}

#define VALUES "values: {steps: 3, lr: 0.1, batch: 2}, contexts: ['{}', 'I know. {}']}"
#define LOCATE "layers: [0, 1], " VALUES
#define MODULES "modules: {gate: [1], down: [1, 2]}}"
INSTANTIATE_TEST_SUITE_P(
    Methods, StreamMethods,
    ::testing::Values(Method{"alphaedit", "{method: alphaedit, null_space_below: 1.0, " LOCATE},
                      Method{"alphaedit_automatic", "{method: alphaedit, " VALUES},
                      Method{"nse_automatic", "{method: nse, neurons: 0.7, " LOCATE},
                      Method{"anchored",
                             "{method: memit, norm_anchor: {mode: rescale, limit: 3}, prune: {log_base: 1.1}, " LOCATE},
                      Method{"rome", "{method: rome, rect: {keep: 0.5}, " LOCATE},
                      Method{"ultraedit", "{method: ultraedit, lr: 1e-3, " MODULES},
                      Method{"ft", "{method: ft-m, steps: 3, " MODULES}),
    [](const auto& method) { return std::string(method.param.name); });

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST_F(StreamJobs, RefuseAnEarlierJobThatDoesNotFit) {
  edit("first", "requests.limit=2");
  const auto continued = [&](const std::string& overrides, const std::string& editor = kMemit) {
    return refusal([&] { edit("second", "requests.skip=2 continue_from=first " + overrides, editor); });
  };
  EXPECT_NE(continued("", "{method: alphaedit, null_space_below: 1.0, " LOCATE).find("editor.method: expected memit"),
            std::string::npos);
  EXPECT_NE(continued("editor.layers=[1,2]").find("editor.layers"), std::string::npos);
  EXPECT_NE(continued("editor.history=false").find("editor.history: expected 'history: true'"), std::string::npos);
  EXPECT_NE(continued("requests.skip=1").find("request 1"), std::string::npos);
  EXPECT_NE(continued("continue_from=nowhere").find("state/"), std::string::npos);
  edit("stateless", "requests.limit=2 output.state=false");
  EXPECT_FALSE(fs::exists(folder_ / "stateless" / "state"));
  EXPECT_NE(continued("continue_from=stateless").find("state/"), std::string::npos);
  const TinyModel other(testing::TinyShape{.seed = 2});
  EXPECT_NE(continued("model=" + other.folder.path().string()).find("another model"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "second"));
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
