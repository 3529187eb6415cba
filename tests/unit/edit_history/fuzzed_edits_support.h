// A history with an entry of each kind, real reports and a job, and what runs do with one that was read.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lancet/core/config_tree.h"
#include "lancet/core/hash.h"
#include "lancet/edit_history/conflicts.h"
#include "lancet/edit_history/downdate.h"
#include "lancet/edit_history/merge.h"
#include "lancet/job/job_config.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/outcome/batch_report.h"
#include "support/history_support.h"
#include "support/structural_fuzz.h"
#include "support/tiny_model.h"

namespace lancet::testing {

/// Entries as lines with right hashes, without an end of their own.
inline std::string lines_with_hashes(const std::vector<std::string>& entries) {
  std::string text, parent;
  for (const std::string& entry : entries) {
    const std::string line = cat("{\"parent\":\"", parent, "\",\"entry\":", entry);
    parent = ContentHash().add("lancet-journal").add(line).hex();
    text += cat(line, ",\"hash\":\"", parent, "\"}\n");
  }
  return text;
}

/// Returns the entries, and the end.
inline std::vector<FuzzedJson> entries_in(const Journal& journal) {
  std::vector<FuzzedJson> entries;
  for (const std::string& line : split(journal.text(), '\n'))
    if (!line.empty()) entries.push_back(FuzzedJson::parse(line).at("entry"));
  return entries;
}

inline constexpr const char* kFuzzJob = R"({
  "editor": {"method": "memit", "layers": [1, 2], "covariance_weight": 20, "contexts": ["{}"],
             "values": {"steps": 2, "lr": 0.5, "clamp": 4.0}},
  "statistics": {"corpus": "corpus.txt", "tokens": 600},
  "evaluate": {"metrics": ["efficacy"]},
  "run": {"devices": "cpu", "dtype": "f32"}})";

/// Makes the report that a run notes for a batch.
inline BatchReport noted(size_t n_edits) {
  BatchReport batch;
  batch.seconds = 0.5;
  for (size_t i = 0; i < n_edits; ++i) {
    batch.outcome.requests.push_back({.steps = 3,
                                      .initial_loss = 4.5,
                                      .final_loss = 0.1,
                                      .initial_norm = 1.5,
                                      .delta_norm = 3.5,
                                      .losses = {4.5F, 0.1F},
                                      .realised = 0.75,
                                      .realised_by_layer = {{1, 0.5}, {2, 0.75}}});
    batch.outcome.columns.push_back(static_cast<int64_t>(i));
  }
  batch.outcome.requests.back().skipped = "too long";
  batch.outcome.batching = {1, static_cast<int64_t>(n_edits), 0, 0};
  batch.outcome.shared_keys = {{"share a key", {{0}}}};
  batch.outcome.chosen = {{"lambda", 1, 20}};
  batch.outcome.warnings = {"so it is"};
  batch.right_after = Tallies{{"efficacy_prob", {1, 2}}};
  batch.growth = {{"model.layers.1.mlp.down_proj.weight", 0.125}};
  return batch;
}

/// An entry of each kind but the finish, and batches with systems and a state.
inline EditHistory history_of_all_kinds(const TinyModel& tiny, const std::string& prefix) {
  EditHistory made({.weights = "aa", .config = "bb", .tokenizer = "cc", .folder = tiny.folder.path().string()});
  made.journal().add_setting(
      {.method = "memit", .editor = R"({"layers": [1, 2]})", .job = kFuzzJob, .contexts = {"{}"}});
  for (const auto& [names, seed] :
       std::vector<std::pair<std::vector<std::string>, uint64_t>>{{{"a", "b"}, 1}, {{"c"}, 2}, {{"d"}, 3}}) {
    std::vector<std::string> ids;
    for (const std::string& name : names) ids.push_back(prefix + name);
    BatchEntry entry = history_entry(ids);
    entry.weights = {{"model.layers.1.mlp.down_proj.weight", "00112233445566778899aabbccddeeff"}};
    entry.report = FuzzedJson::parse(to_record(noted(ids.size())));
    made.add(std::move(entry), history_batch(static_cast<int64_t>(ids.size()), seed), tiny.config);
  }
  made.undo({.when = "2026-11-23T08:00:02Z", .keeps = 2, .edits = {prefix + "d"}, .approximation = ""});
  const MeasuredEdit measured{.before = {{"efficacy", 0.1}}, .after = {{"efficacy", 0.9}}, .success = true};
  made.journal().add_measure("the weights", {{"w", "h"}}, {{prefix + "a", measured}});
  return made;
}

/// What a run that goes on takes from the reports. The journal was read, so that nothing in them is refused any more.
inline void use_reports(const Journal& journal) {
  std::vector<BatchReport> batches;
  int64_t n = 0;
  for (const BatchEntry& batch : journal.batches()) {
    if (batch.report.is_null()) continue;
    try {
      batches.push_back(from_record(batch.report.dump(), batch.edits.size()));
    } catch (const Error& error) {
      ADD_FAILURE() << "a journal was read whose report is none: " << error.what();
      return;
    }
    const std::string record = to_record(batches.back());
    EXPECT_EQ(to_record(from_record(record, batch.edits.size())), record);
    for (size_t i = 0; i < batch.edits.size(); ++i) batches.back().requests.push_back(n++);
  }
  EXPECT_EQ(std::ssize(merged_outcome(batches, static_cast<size_t>(n)).requests), n);
}

/// The standing batches' jobs, as they are made again. What options hold, the job's own reader judges.
inline void use_jobs(const Journal& journal, const std::filesystem::path& folder) {
  for (const BatchEntry& batch : journal.batches()) {
    const std::string& job = journal.settings().at(batch.setting).job;
    if (job.empty()) continue;
    ConfigTree tree = parse_config(job, "the edits' job");
    for (const char* key : {"accept", "continue_from", "schedule", "requests", "output"}) tree.erase(key);
    tree.set("model", ConfigTree::text(folder.string()));
    std::vector<ConfigTree> records;
    for (const EditRecord& edit : batch.edits) records.push_back(parse_config(to_json_line(edit.request), "a request"));
    for (ConfigTree& record : records) forget_lines(record);
    tree.set("requests", ConfigTree::list(std::move(records)));
    tree.set("output", ConfigTree::map()).set("dir", ConfigTree::text((folder / "out").string()));
    parse_job(tree, folder, "the edits' job", JobPurpose::kEdit);
  }
}

/// Uses a history as apply, merge and log do.
inline void use_history(const EditHistory& read, const EditHistory& other, const ModelConfig& config) {
  for (const UndoEntry& undo : read.journal().undone()) describe_undo(undo);
  use_reports(read.journal());
  read.state({});
  read.all_changes();
  const std::vector<const EditHistory*> both{&other, &read};
  check_mergeable(both);
  find_conflicts(both, {});
  interference(both);
  add_histories(both, config);
  asked_in_all(read);
}

/// Takes an edit out as undo does.
inline Downdated take_out(const EditHistory& read, const std::string& id) {
  const ReportWithout report = [](const BatchEntry& batch, const std::vector<int64_t>& kept) {
    if (batch.report.is_null()) return batch.report;
    return FuzzedJson::parse(to_record(without_requests(from_record(batch.report.dump(), batch.edits.size()), kept)));
  };
  return without_edits(read, {id}, {.solve = {}, .report = report});
}

}  // namespace lancet::testing
