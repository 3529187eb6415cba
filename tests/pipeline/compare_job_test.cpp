// Several methods compared: each gives what it gives alone, whatever ran before it and on however many ranks.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/studies/compare_job.h"
#include "support/edit_setup.h"
#include "support/thread_ranks.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;
using testing::TinyModel;
using Json = nlohmann::json;

#define COMPARED_VALUES "layers: [0, 1], values: {steps: 3, lr: 0.1, batch: 2}, contexts: ['{}', 'I know. {}']"
constexpr const char* kMethods = "{memit: {method: memit, covariance_weight: 20, " COMPARED_VALUES
                                 "}, "
                                 "memit+history: {method: memit, covariance_weight: 20, history: true, " COMPARED_VALUES
                                 "}, "
                                 "alphaedit: {method: alphaedit, null_space_below: 1.0, " COMPARED_VALUES
                                 "}, "
                                 "impossible: {method: alphaedit, null_space_below: 1e-9, " COMPARED_VALUES
                                 "}, "
                                 "ft-m: {method: ft-m, steps: 3, modules: {down: [1, 2]}}, "
                                 "again: {method: memit, covariance_weight: 20, " COMPARED_VALUES "}}";

class CompareJobs : public ::testing::Test {
 protected:
  CompareJobs() {
    std::ofstream lines(folder_ / "requests.jsonl");
    for (const EditRequest& request : testing::some_requests(6)) lines << to_json_line(request) << "\n";
    lines.close();
    testing::write_corpus(folder_.path(), 300);
  }

  ConfigTree tree(const std::string& output) const {
    return parse_config(cat("{model: ", tiny_.folder.path().string(), ", requests: {path: requests.jsonl}, compare: ",
                            kMethods, ", statistics: {corpus: corpus.txt, tokens: 3000, cache: cache, ridge: 1e-3}, ",
                            "evaluate: [efficacy, generation], schedule: {batch: 3}, output: {dir: ", output,
                            "}, run: {dtype: f64, seed: 3}}"),
                        "test");
  }

  CompareReport compare(const std::string& output, const std::vector<std::string>& labels,
                        Communicator& ranks = alone()) const {
    return run_compare_job(parse_compare_job(tree(output), folder_.path(), "test", labels), ranks);
  }

  Json read(const fs::path& file) const {
    std::ifstream stream(folder_ / file);
    return Json::parse(stream);
  }

  /// A report without what differs from run to run.
  Json lasting(Json report) const {
    for (const char* key : {"seconds", "peak_bytes", "stage_peak_bytes", "statistics", "run", "journal"})
      report.erase(key);
    for (Json& batch : report["batches"]) batch.erase("seconds");
    return report;
  }

  TinyModel tiny_;
  TempDir folder_;
};

TEST_F(CompareJobs, EveryMethodGivesWhatItGivesAlone) {
  const CompareReport report = compare("all", {});
  ASSERT_EQ(report.methods.size(), 6u);
  EXPECT_FALSE(report.all_succeeded());
  for (const std::string label : {"memit", "memit+history", "alphaedit", "ft-m"}) {
    ConfigTree job = tree("alone-" + label);
    job.set("editor", *job.find("compare")->find(label));
    run_edit_job(parse_job(job, folder_.path(), "test", JobPurpose::kEdit), alone());
    EXPECT_EQ(lasting(read(fs::path("all") / label / "report.json")),
              lasting(read(fs::path("alone-" + label) / "report.json")))
        << label;
  }
  // the weights are as they were: the same method after all others edits and measures the same bits
  EXPECT_EQ(lasting(read("all/again/report.json")), lasting(read("all/memit/report.json")));
  const auto final_loss = [&](const char* label) {
    return read(fs::path("all") / label / "report.json")["requests"][4]["value"]["final_loss"].get<double>();
  };
  EXPECT_NE(final_loss("memit"), final_loss("alphaedit"));
}

TEST_F(CompareJobs, AMethodThatFailsIsNotedAndTheOthersRun) {
  const CompareReport report = compare("some", {"memit", "impossible", "again"});
  EXPECT_NE(report.methods[1].error.find("no eigenvalue"), std::string::npos) << report.methods[1].error;
  EXPECT_TRUE(report.methods[2].error.empty());
  const Json file = read("some/compare.json");
  EXPECT_EQ(file["methods"].size(), 3u);
  EXPECT_EQ(file["methods"][1]["status"], "failed");
  EXPECT_EQ(file["methods"][1]["error"], report.methods[1].error);
  EXPECT_EQ(file["methods"][0]["after"], file["methods"][2]["after"]);
  EXPECT_GT(file["methods"][0]["seconds_per_edit"], 0.0);
  EXPECT_FALSE(fs::exists(folder_ / "some" / "impossible"));
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_.path())) names.insert(entry.path().filename().string());
  EXPECT_EQ(names, (std::set<std::string>{"cache", "corpus.txt", "requests.jsonl", "some"}));
}

TEST_F(CompareJobs, GiveOnSeveralRanksWhatOneGives) {
  compare("single", {"impossible", "memit+history", "alphaedit"});
  const Json single = read("single/compare.json");
  for (const int64_t size : {2, 3}) {
    const std::string output = cat("ranks", size);
    testing::run_ranks(size, [&](Communicator& ranks) {
      const CompareReport report = compare(output, {"impossible", "memit+history", "alphaedit"}, ranks);
      EXPECT_FALSE(report.methods[0].error.empty());
      EXPECT_TRUE(report.methods[1].error.empty());
    });
    const Json shared = read(output + "/compare.json");
    for (size_t i = 0; i < 3; ++i) {
      for (const char* key : {"status", "error", "after", "right_after"}) {
        if (i == 0 && std::string(key).ends_with("after")) continue;
        EXPECT_EQ(shared["methods"][i][key], single["methods"][i][key]) << i << key;
      }
    }
    EXPECT_EQ(shared["before"], single["before"]);
  }
}

TEST_F(CompareJobs, RefuseWhatCannotBeCompared) {
  const auto refusal = [&](const std::string& override, const std::vector<std::string>& labels = {}) {
    ConfigTree job = tree("none");
    if (!override.empty()) apply_override(job, override);
    try {
      parse_compare_job(job, folder_.path(), "test", labels);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal(""), "");
  EXPECT_NE(refusal("", {"memti"}).find("Did you mean memit"), std::string::npos);
  EXPECT_NE(refusal("", {"memit", "memit"}).find("twice"), std::string::npos);
  EXPECT_NE(refusal("compare.memit.layers=[-1]").find("compare.memit.layers"), std::string::npos);
  EXPECT_NE(refusal("compare.memit.lairs=[1]").find("compare.memit.lairs"), std::string::npos);
  EXPECT_NE(refusal("compare={}").find("expected a map from labels"), std::string::npos);
  EXPECT_NE(refusal("compare={../x: {method: ft-m, modules: {down: [1]}}}").find("expected a label"),
            std::string::npos);
  EXPECT_NE(refusal("continue_from=earlier").find("continue_from: expected none"), std::string::npos);
  EXPECT_EQ(refusal("statistics=null"), "") << "the model writes its own text";
}

}  // namespace
}  // namespace lancet
