// Jobs of several batches on one tiny model.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "lancet/core/strings.h"
#include "lancet/edit_history/edit_history.h"
#include "lancet/io/files.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/pipeline/edit_job.h"
#include "support/edit_setup.h"
#include "support/interrupted.h"
#include "support/io_support.h"
#include "support/thread_ranks.h"
#include "support/tiny_model.h"

namespace lancet::testing {

namespace fs = std::filesystem;
using Json = nlohmann::json;

inline constexpr const char* kMemit =
    "{method: memit, layers: [0, 1], covariance_weight: 20, history: true, values: {steps: 3, lr: 0.1, batch: 2}, "
    "contexts: {generate: 2, length: 6}}";
inline constexpr const char* kWeight = "model.layers.1.mlp.down_proj.weight";

/// A stage that begins for the `nth` time.
struct StageStart {
  std::string stage = {};
  int64_t nth = 1;
};

/// Jobs on one tiny model, of up to 8 requests.
class StreamJobs : public ::testing::Test {
 protected:
  StreamJobs() {
    std::ofstream lines(folder_ / "requests.jsonl");
    for (const EditRequest& request : some_requests(8)) lines << to_json_line(request) << "\n";
    write_corpus(folder_.path(), 300);
  }

  /// `overrides`: separated by blanks.
  ResolvedJob job(const std::string& output, const std::string& editor, const std::string& overrides) const {
    const std::string text =
        cat("{model: ", tiny_.folder.path().string(), ", requests: {path: requests.jsonl}, editor: ", editor,
            ", statistics: {corpus: corpus.txt, tokens: 3000, cache: cache, ridge: 1e-3}, evaluate: [efficacy], ",
            "schedule: {batch: 2}, output: {dir: ", output, "}, run: {dtype: f64, seed: 3}}");
    ConfigTree tree = parse_config(text, "test");
    std::istringstream each(overrides);
    for (std::string assignment; each >> assignment;) apply_override(tree, assignment);
    keep_folder(tree, folder_.path());  // `continue_from=first` lies beside the requests
    return parse_job(tree, folder_.path(), "test", JobPurpose::kEdit);
  }

  EditReport edit(const std::string& output, const std::string& overrides = "",
                  const std::string& editor = kMemit) const {
    return run_edit_job(job(output, editor, overrides), alone());
  }

  /// The job, ended by a fault as `end` begins.
  void edit_until(const std::string& output, const StageStart& end, const std::string& overrides = "",
                  const std::string& editor = kMemit) const;
  /// Ends the job likewise as it begins to solve for the `nth` time.
  void edit_until(const std::string& output, int64_t nth_solve, const std::string& overrides = "",
                  const std::string& editor = kMemit) const {
    edit_until(output, {"solve", nth_solve}, overrides, editor);
  }

  EditHistory history(const std::string& output) const {
    return EditHistory::load(folder_ / output / kEditsFolder, tiny_.config);
  }

  /// The exact change of every weight, summed.
  std::map<std::string, Tensor> changes(const std::string& output) const {
    std::map<std::string, Tensor> sums;
    for (const WeightChanges& weight : history(output).all_changes())
      for (const WeightDelta& delta : weight.deltas) {
        Tensor& sum = sums[weight_name(tiny_.config, weight.id)];
        sum = sum.defined() ? sum + to_dense(delta) : to_dense(delta);
      }
    return sums;
  }

  /// Returns the files of each batch's changes, and of what they were solved from, by name: "changes/HASH.safetensors".
  std::map<std::string, std::string> edit_files(const std::string& output) const {
    const fs::path edits = folder_ / output / kEditsFolder;
    std::map<std::string, std::string> files;
    for (const char* part : {"changes", "solved"})
      for (const auto& entry : fs::directory_iterator(edits / part))
        files[cat(part, "/", entry.path().filename().string())] = bytes(entry.path());
    return files;
  }

  /// The journal's lines without what differs from run to run: times, the hashes that they are in, and how values came
  /// about (some are taken from an interrupted run).
  Json journal(const std::string& output) const {
    Json entries = Json::array();
    std::istringstream lines(bytes(fs::path(output) / kEditsFolder / kJournalFile));
    for (std::string line; std::getline(lines, line);) {
      Json entry = Json::parse(line).at("entry");
      entry.erase("when");
      if (entry["kind"] == "batch") {
        entry["report"].erase("seconds");
        entry["report"]["outcome"].erase("values");
      }
      if (entry["kind"] == "measure")
        for (Json& edit : entry["edits"]) edit.erase("when");
      entries.push_back(std::move(entry));
    }
    return entries;
  }

  /// The request of each column of every weight's changes, in the order of application.
  std::vector<std::string> column_ids(const std::string& output) const {
    std::vector<std::string> ids;
    for (const EditHistory history = this->history(output); const BatchEntry& batch : history.journal().batches())
      for (const int64_t column : batch.columns) ids.push_back(batch.edits[static_cast<size_t>(column)].request.id);
    return ids;
  }

  std::string bytes(const fs::path& file) const { return read_bytes(folder_ / file); }

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

inline void StreamJobs::edit_until(const std::string& output, const StageStart& end, const std::string& overrides,
                                   const std::string& editor) const {
  Interrupted ranks(end.stage, end.nth);
  EXPECT_THROW(run_edit_job(job(output, editor, overrides), ranks), std::runtime_error);
  EXPECT_FALSE(fs::exists(folder_ / output));
}

/// Changes the last byte of a file, or the last digit of JSON.
inline void flip_a_bit(const fs::path& file) {
  std::string bytes = read_text_file(file, "test");
  const size_t at = bytes.find_last_of("0123456789");
  char& changed = bytes[file.extension().string().starts_with(".json") ? at : bytes.size() - 1];
  changed = static_cast<char>(changed ^ 1);
  write_text_file(file, bytes);
}

}  // namespace lancet::testing
