#include "history_source.h"

#include "edit/output_edits.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

fs::path output_of(const fs::path& edits) {
  if (fs::exists(edits / kJournalFile)) return fs::absolute(edits / "..").lexically_normal();
  if (!has_edits(edits))
    throw ConfigError(cat(edits.string(), ": expected the output of lancet edit, with its folder ", kEditsFolder,
                          "/, or that folder; found neither"));
  return edits;
}

/// Where the base lay, as an output of any version says it.
fs::path base_of(const fs::path& output) {
  const fs::path journal = output / kEditsFolder;
  const fs::path base = fs::exists(journal / kJournalFile)
                            ? fs::path(Journal::read(journal).base().folder)
                            : fs::path(load_config(output / "job.yaml").find("model")->scalar);
  if (!fs::exists(base))
    throw ConfigError(cat(output.string(), ": the base model of its edits lay in ", base.string(),
                          ", where there is nothing: --to or --model says where it lies now"));
  return base;
}

}  // namespace

HistorySource::HistorySource(const fs::path& edits, const fs::path& model)
    : output_(output_of(edits)), model_(model.empty() ? base_of(output_) : model), files_(open_model(model_, {})) {
  const fs::path folder = output_ / kEditsFolder;
  journal_ = fs::exists(folder / kJournalFile) ? Journal::read(folder) : history().journal();
  if (journal_->batches().empty()) throw ConfigError(cat(edits.string(), ": no edit stands in it"));
}

const EditHistory& HistorySource::history() {
  if (!history_) history_ = load_edits(output_, files_.config);
  return *history_;
}

JobConfig HistorySource::job(size_t setting, std::span<const EditRequest> requests, const Target& target,
                             std::span<const std::string> overrides) const {
  const EditSetting& edited_by = journal_->settings().at(setting);
  const fs::path job_file = output_ / "job.yaml";
  const bool has_file = fs::exists(job_file);
  if (edited_by.job.empty() && !has_file)
    throw ConfigError(cat(output_.string(), ": expected job.yaml in this output of an earlier version, found none"));
  ConfigTree tree = edited_by.job.empty() ? load_config(job_file) : parse_config(edited_by.job, "the edits' job");
  for (const char* key : {"accept", "continue_from", "schedule", "requests", "output"}) tree.erase(key);
  tree.set("model", ConfigTree::text(fs::absolute(model_).string()));
  std::vector<ConfigTree> records;
  for (const EditRequest& request : requests) records.push_back(parse_config(to_json_line(request), request.id));
  for (ConfigTree& record : records) forget_lines(record);
  tree.set("requests", ConfigTree::list(std::move(records)));
  const ConfigTree earlier = has_file ? load_config(job_file) : ConfigTree::map();
  const ConfigTree* kept = earlier.find("output");
  ConfigTree output = kept != nullptr ? *kept : ConfigTree::map();
  output.set("dir", ConfigTree::text(fs::absolute(target.dir).string()));
  tree.set("output", std::move(output));
  apply_override(tree, cat("output.replace=", target.if_exists == IfExists::kReplace ? "true" : "false"));
  for (const std::string& override : overrides) apply_override(tree, override);
  return parse_job(tree, fs::current_path(), "the edits' job", JobPurpose::kEdit);
}

size_t one_setting(const Journal& journal, size_t first) {
  const size_t setting = journal.batches()[first].setting;
  for (size_t i = first; i < journal.batches().size(); ++i)
    if (journal.batches()[i].setting != setting)
      throw ConfigError(cat("batches ", first + 1, " and ", i + 1, " were edited by different jobs (",
                            journal.settings()[setting].method, ", ",
                            journal.settings()[journal.batches()[i].setting].method,
                            " or its options): edits of several jobs cannot be made again in one run"));
  return setting;
}

std::vector<EditRequest> requests_of(const Journal& journal) {
  std::vector<EditRequest> requests;
  for (const BatchEntry& batch : journal.batches())
    for (const EditRecord& edit : batch.edits) requests.push_back(edit.request);
  return requests;
}

std::vector<std::vector<int64_t>> batches_of(const Journal& journal) {
  std::vector<std::vector<int64_t>> batches;
  int64_t next = 0;
  for (const BatchEntry& batch : journal.batches()) {
    batches.emplace_back();
    for (size_t i = 0; i < batch.edits.size(); ++i) batches.back().push_back(next++);
  }
  return batches;
}

}  // namespace lancet
