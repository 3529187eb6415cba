#include "history_source.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/model_file_output.h"
#include "lancet/job/dotted_key.h"
#include "lancet/job_setup/parse_job.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJobFile = "job.yaml";

fs::path edits_folder(const fs::path& given) {
  const std::optional<fs::path> found = find_journal(given);
  if (!found)
    throw ConfigError(cat(given.string(), ": expected the output of lancet edit, with its folder ", kEditsFolder,
                          "/, or that folder, under any name; found neither"));
  return *found;
}

/// The folder of edits alone counts as part of the output around it where it has its place and its name there: beside a
/// copy may lie another output, or the reader's own job.
std::optional<fs::path> output_of(const fs::path& given, const fs::path& edits) {
  if (edits != given) return given;
  const fs::path whole = fs::absolute(given / "").lexically_normal().parent_path(), around = whole.parent_path();
  const bool is_in_output =
      whole.filename() == kEditsFolder && fs::exists(around / kReportFile) && fs::exists(around / kJobFile);
  return is_in_output ? std::optional(around) : std::nullopt;
}

/// Loads the job file of an output, which somebody may have changed. Throws: ConfigError, also if it is not a map of
/// sections.
ConfigTree load_job_file(const fs::path& path) {
  ConfigTree job = load_config(path);
  const ConfigTree* const output = job.find("output");
  if (job.kind != ConfigTree::Kind::kMap || (output != nullptr && output->kind != ConfigTree::Kind::kMap))
    throw ConfigError(cat(path.string(), ": expected the job that lancet edit left there, got other YAML: take it ",
                          "from where the output was made"));
  return job;
}

/// Returns where the base lay.
fs::path base_of(const fs::path& given, const Journal& journal) {
  const fs::path base = journal.base().folder;
  if (!fs::exists(base))
    throw ConfigError(cat(given.string(), ": the base model of its edits lay in ", base.string(),
                          ", where there is nothing: --to or --model says where it lies now"));
  return base;
}

}  // namespace

HistorySource::HistorySource(const fs::path& edits, const fs::path& model)
    : given_(existing_output(edits).folder),
      edits_(edits_folder(given_)),
      output_(output_of(given_, edits_)),
      journal_(Journal::read(edits_)),
      model_(model.empty() ? base_of(given_, journal_) : model),
      files_(open_model(model_, {})) {
  if (journal_.batches().empty()) throw ConfigError(cat(edits.string(), ": no edit stands in it"));
}

const EditHistory& HistorySource::history() {
  if (!history_) history_ = EditHistory::load(edits_, journal_, files_.config);
  return *history_;
}

ResolvedJob HistorySource::job(size_t setting, std::span<const EditRequest> requests, const Target& target,
                               std::span<const std::string> overrides) const {
  const EditSetting& edited_by = journal_.settings().at(setting);
  if (edited_by.job.empty())
    throw ConfigError(cat(given_.string(), ": expected the job in the journal's setting, found none: these edits ",
                          "cannot be made again"));
  ConfigTree tree = parse_config(edited_by.job, "the edits' job");
  for (const char* key : {"accept", "continue_from", "schedule", "requests", "output"}) tree.erase(key);
  tree.set("model", ConfigTree::text(fs::absolute(model_).string()));
  std::vector<ConfigTree> records;
  for (const EditRequest& request : requests) records.push_back(parse_config(to_json_line(request), request.id));
  for (ConfigTree& record : records) forget_lines(record);
  tree.set("requests", ConfigTree::list(std::move(records)));
  const fs::path job_file = output_ ? *output_ / kJobFile : fs::path();
  const ConfigTree earlier = output_ && fs::exists(job_file) ? load_job_file(job_file) : ConfigTree::map();
  const ConfigTree* kept = earlier.find("output");
  ConfigTree output = kept != nullptr ? *kept : ConfigTree::map();
  if (const ConfigTree* format = output.find("format");
      target.adapters == AdapterOutputs::kBecomeModels && format != nullptr && format->scalar == "adapter")
    output.erase("format");
  output.set("dir", ConfigTree::text(fs::absolute(target.dir).string()));
  tree.set("output", std::move(output));
  apply_override(tree, cat("output.replace=", target.if_exists == IfExists::kReplace ? "true" : "false"));
  for (const std::string& override : overrides) apply_override(tree, override);
  return parse_job(tree, fs::current_path(), "the edits' job", JobPurpose::kEdit);
}

namespace {

/// Returns a text of what a batch's edits depend on. It leaves out the places of files, whose content the journal has,
/// and how a run was placed on devices.
std::string what_edited(const EditSetting& setting) {
  const ConfigTree editor = parse_config(setting.editor, "the edits' editor");
  std::string text = cat(setting.method, "\n", to_yaml(editor), "\n", setting.statistics, "\n", setting.dtype, "\n",
                         setting.version, "\n", join(setting.contexts, "\n"));
  if (setting.job.empty()) return text;
  const ConfigTree job = parse_config(setting.job, "the edits' job");
  for (const char* key : {"run.seed", "run.quantise_base", "statistics.ridge"})
    if (const ConfigTree* value = find_dotted(job, key)) text += cat("\n", key, " ", to_yaml(*value));
  return text;
}

}  // namespace

size_t one_setting(const Journal& journal, size_t first) {
  const std::vector<BatchEntry>& batches = journal.batches();
  const EditSetting& setting = journal.settings()[batches[first].setting];
  for (size_t i = first; i < batches.size(); ++i)
    if (const EditSetting& other = journal.settings()[batches[i].setting]; what_edited(other) != what_edited(setting))
      throw ConfigError(cat("batches ", first + 1, " and ", i + 1, " were edited by different jobs (", setting.method,
                            ", ", other.method, " or its options): edits of several jobs cannot be made again in one ",
                            "run"));
  return batches.back().setting;
}

Numbered numbered(const std::vector<std::vector<EditRequest>>& batches) {
  Numbered numbered;
  for (const std::vector<EditRequest>& batch : batches) {
    numbered.batches.emplace_back();
    for (const EditRequest& request : batch) {
      numbered.batches.back().push_back(static_cast<int64_t>(numbered.requests.size()));
      numbered.requests.push_back(request);
    }
  }
  return numbered;
}

Numbered numbered(const Journal& journal) {
  std::vector<std::vector<EditRequest>> batches;
  for (const BatchEntry& batch : journal.batches()) {
    batches.emplace_back();
    for (const EditRecord& edit : batch.edits) batches.back().push_back(edit.request);
  }
  return numbered(batches);
}

MadeOutput make_output(const ResolvedJob& job, Communicator& communicator, ReplayedEdits given) {
  MadeOutput made{.report = run_edit_job(job, communicator, std::move(given)), .place = job.output->place};
  if (communicator.is_root()) made.report_json = to_json(made.report, job);
  return made;
}

}  // namespace lancet
