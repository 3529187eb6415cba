// Whole jobs on several ranks: one output, equal reports, and no rank that waits for one that failed.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "lancet/checkpoint/safetensors.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/models/tensor_io.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/studies/eval_job.h"
#include "support/edit_setup.h"
#include "support/thread_ranks.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;
using testing::Fault;
using testing::message_of;
using testing::nmse;
using testing::RankErrors;
using testing::run_ranks;
using testing::TempDir;
using testing::TinyModel;
using testing::try_ranks;

/// Jobs on one tiny model; each run has a folder of its own.
class RankJobs : public ::testing::Test {
 protected:
  RankJobs() {
    const std::vector<EditRequest> requests = testing::some_requests(5);
    std::ofstream lines(folder_ / "requests.jsonl");
    for (const EditRequest& request : requests) lines << to_json_line(request) << "\n";
    testing::write_corpus(folder_.path(), 3000);
  }

  ResolvedJob job(const std::string& run, const std::string& overrides = "") const {
    const std::string text = cat(
        "{model: ", tiny_.folder.path().string(),
        ", requests: {path: requests.jsonl}, editor: {method: memit, layers: ",
        "[0, 1], covariance_weight: 20, values: {steps: 3, lr: 0.1, batch: 2}, contexts: {generate: 2, length: 6}}, ",
        "statistics: {corpus: corpus.txt, tokens: 20000, cache: ", run, "-cache}, evaluate: [efficacy, generation], ",
        "output: {dir: ", run, "/model}, run: {dtype: f64, seed: 3}}");
    ConfigTree tree = parse_config(text, "test");
    for (std::istringstream each(overrides); !each.eof();) {
      std::string assignment;
      each >> assignment;
      if (!assignment.empty()) apply_override(tree, assignment);
    }
    return parse_job(tree, folder_.path(), "test", JobPurpose::kEdit);
  }

  /// The job on `size` ranks; all reports.
  std::vector<EditReport> edit(const std::string& run, int64_t size, const std::string& overrides = "") const {
    std::vector<EditReport> reports(static_cast<size_t>(size));
    run_ranks(size, [&](Communicator& communicator) {
      reports[static_cast<size_t>(communicator.rank())] = run_edit_job(job(run, overrides), communicator);
    });
    return reports;
  }

  nlohmann::json report_file(const std::string& run, const std::string& output = "model") const {
    std::ifstream file(folder_ / run / output / "report.json");
    return nlohmann::json::parse(file);
  }

  /// What lies beside a run's output.
  std::set<std::string> written(const std::string& run) const {
    std::set<std::string> names;
    if (!fs::exists(folder_ / run)) return names;
    for (const auto& entry : fs::directory_iterator(folder_ / run)) names.insert(entry.path().filename().string());
    return names;
  }

  /// Returns the changes of a run's only batch.
  fs::path changes_file(const std::string& run) const {
    fs::path path;
    for (const auto& entry : fs::directory_iterator(folder_ / run / "model" / "edits" / "changes")) {
      EXPECT_TRUE(path.empty()) << "a second batch";
      path = entry.path();
    }
    return path;
  }

  TinyModel tiny_;
  TempDir folder_;
};

Tensor tensor_of(const fs::path& file, const std::string& name) {
  return to_tensor(SafetensorsReader::open(file).view(name)).clone();
}

/// Numbers within rounding, everything else equal.
void expect_like(const nlohmann::json& a, const nlohmann::json& b, const std::string& where) {
  ASSERT_EQ(a.type(), b.type()) << where;
  if (a.is_number_float()) {
    EXPECT_NEAR(a.get<double>(), b.get<double>(), 1e-9 * std::max(1.0, std::abs(b.get<double>()))) << where;
  } else if (a.is_structured()) {
    ASSERT_EQ(a.size(), b.size()) << where;
    for (auto x = a.begin(), y = b.begin(); x != a.end(); ++x, ++y)
      expect_like(*x, *y, cat(where, "/", a.is_object() ? x.key() : ""));
  } else {
    EXPECT_EQ(a, b) << where;
  }
}

TEST_F(RankJobs, GiveTheReportAndTheDeltaOfOneProcess) {
  run_edit_job(job("single"), alone());
  nlohmann::json single = report_file("single");
  EXPECT_EQ(single["run"]["ranks"], 1);
  for (const int64_t size : {2, 3, 4}) {
    const std::string run = cat("ranks", size);
    const std::vector<EditReport> reports = edit(run, size);
    EXPECT_EQ(written(run), std::set<std::string>{"model"});
    nlohmann::json report = report_file(run);
    EXPECT_EQ(report["run"]["ranks"], size);
    for (nlohmann::json* each : {&report, &single})
      for (const char* key : {"seconds", "peak_bytes", "stage_peak_bytes", "run"}) each->erase(key);
    for (nlohmann::json* each : {&report, &single}) {
      each->at("batches")[0].erase("seconds");
      each->at("journal")["batches"][0].erase("when");
    }
    expect_like(report, single, cat(size, " ranks: "));
    for (const EditReport& own : reports) {
      EXPECT_EQ(own.contexts, reports.front().contexts);
      EXPECT_EQ(own.after.continuations, reports.front().after.continuations);
      EXPECT_FALSE(overall_peaks(own.stages).empty());
    }
    for (const char* side : {"left", "right"}) {
      const std::string name = cat("model.layers.1.mlp.down_proj.weight/0/", side);
      EXPECT_LE(nmse(tensor_of(changes_file(run), name), tensor_of(changes_file("single"), name)), 1e-13);
    }
  }
}

TEST_F(RankJobs, AllRejectWhatIsNotAccepted) {
  for (const EditReport& report : edit("strict", 3, "accept.efficacy_argmax=1 editor.values.lr=0.0001"))
    EXPECT_EQ(report.unmet.size(), 1u);
  EXPECT_EQ(written("strict"), std::set<std::string>{"model.rejected"});
  EXPECT_EQ(report_file("strict", "model.rejected")["status"], "rejected");
}

TEST_F(RankJobs, MeasureTheSameWithoutEditing) {
  const EvalReport single = run_eval_job(job("eval"), {}, alone());
  run_ranks(3, [&](Communicator& communicator) {
    const EvalReport shared = run_eval_job(job("eval"), {}, communicator);
    EXPECT_EQ(shared.content_hash, single.content_hash);
    EXPECT_EQ(shared.evaluation.continuations, single.evaluation.continuations);
    for (const auto& [name, tally] : single.evaluation.totals)
      EXPECT_EQ(shared.evaluation.totals.at(name).sum, tally.sum) << name;
  });
}

TEST_F(RankJobs, PutStatisticsIntoRootsCacheAlone) {
  run_ranks(2, [&](Communicator& communicator) {
    const bool is_root = communicator.is_root();
    const ResolvedJob own = job("stats");
    const StatisticsReport report = run_statistics_job(own, communicator);
    EXPECT_EQ(report.layers.size(), is_root ? 2u : 0u);
    for (const LayerStatisticsReport& layer : report.layers) EXPECT_TRUE(fs::exists(layer.factor_file));
  });
  for (const LayerStatisticsReport& layer : run_statistics_job(job("stats"), alone()).layers)
    EXPECT_TRUE(layer.factor_from_cache);
}

TEST_F(RankJobs, RefuseARankWithAnotherJob) {
  const RankErrors errors = try_ranks(4, [&](Communicator& communicator) {
    run_edit_job(job("differ", communicator.rank() >= 2 ? "run.seed=4" : ""), communicator);
  });
  for (const std::exception_ptr& error : errors) {
    EXPECT_TRUE(message_of(error).starts_with("rank 2: the job: expected the same as on rank 0")) << message_of(error);
    EXPECT_THROW(std::rethrow_exception(error), ConfigError);
  }
  EXPECT_TRUE(written("differ").empty());
}

class FaultyRankJobs : public RankJobs, public ::testing::WithParamInterface<std::string> {};

/// The rank's own error comes out of it, the others name it; nothing is written, and the next run succeeds.
TEST_P(FaultyRankJobs, EndAllRanksAndLeaveNoOutput) {
  for (const int64_t failing : {0, 2}) {
    const std::string run = cat("failing", failing);
    const RankErrors errors = try_ranks(
        3, [&](Communicator& communicator) { run_edit_job(job(run), communicator); }, Fault{failing, GetParam()});
    for (int64_t rank = 0; rank < 3; ++rank) {
      const std::string message = message_of(errors[static_cast<size_t>(rank)]);
      if (rank == failing)
        EXPECT_EQ(message, testing::kFaultMessage);
      else
        EXPECT_EQ(message, cat("rank ", failing, ": ", GetParam(), ": ", testing::kFaultMessage));
    }
    std::set<std::string> left = written(run);
    left.erase("model.unfinished");
    EXPECT_TRUE(left.empty()) << *left.begin();
  }
  edit("failing2", 2);
  EXPECT_EQ(written("failing2"), std::set<std::string>{"model"});
}

INSTANTIATE_TEST_SUITE_P(Stages, FaultyRankJobs,
                         ::testing::Values("edit", "open", "compare", "load", "contexts", "statistics", "factors",
                                           "evaluate before", "values", "keys", "solve", "evaluate after", "export"),
                         [](const auto& stage) {
                           std::string name = stage.param;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

}  // namespace
}  // namespace lancet
