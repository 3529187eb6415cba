#include "lancet/pipeline/earlier_output.h"

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/job/dotted_key.h"
#include "lancet/job/job_config.h"
#include "lancet/runtime/communicator.h"
#include "lancet/spec/editor_spec.h"
#include "stream_start.h"

namespace lancet {
namespace {

std::string option_text(const ConfigTree& editor, std::string_view key) {
  const ConfigTree* value = editor.find(key);
  if (value == nullptr) return "nothing";
  ConfigTree alone = ConfigTree::map();
  alone.set(std::string(key), *value);
  std::string text = to_yaml(alone);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// Whether the option is present and lancet chooses its number: the value is `auto` or a rule.
bool is_chosen(const ConfigTree& editor, std::string_view key) {
  const ConfigTree* value = editor.find(key);
  return value != nullptr && (value->kind == ConfigTree::Kind::kMap || is_auto(*value));
}

void check_same_option(std::string_view key, const ConfigTree& earlier, const ConfigTree& now,
                       const std::string& where) {
  const std::string before = option_text(earlier, key), after = option_text(now, key);
  if (before != after)
    throw ConfigError(
        cat(where, "editor.", key, ": expected '", before, "' as there, got '", after, "': the state depends on it"));
}

/// Checks the options that determine a stream's state, and the rules by which lancet chose numbers that a state keeps.
void check_same_options(const ConfigTree& earlier, const ConfigTree& now, const std::string& where) {
  for (const Affects kind : {Affects::kState, Affects::kChosenState})
    for (const AnyOption& option : kEditorOptions) {
      const auto& [key, affects] = std::pair{base_of(option).key, base_of(option).affects};
      if (affects != kind) continue;
      if (kind == Affects::kState || (is_chosen(earlier, key) && is_chosen(now, key)))
        check_same_option(key, earlier, now, where);
    }
}

}  // namespace

std::string editor_yaml(const JobConfig& job) { return to_yaml(job.editor_options); }

EditHistory read_whole_history(const std::filesystem::path& folder, const ModelConfig& config, const std::string& where,
                               const std::string& otherwise) {
  const std::optional<std::filesystem::path> edits = find_journal(folder);
  if (!edits)
    throw ConfigError(
        cat(where, "expected the output of lancet edit with its folder edits/ (output.state: true), found none"));
  EditHistory history = [&] {
    try {
      return EditHistory::load(*edits, config);
    } catch (const CheckpointError& error) {  // edits cannot be made again by themselves
      throw CheckpointError(
          cat(where, error.what(), "; take the folder edits/ from a copy of the output, or ", otherwise));
    }
  }();
  if (!history.has_solved())
    throw ConfigError(cat(where, "its edits/ has no folder solved/, which another job goes on with: it was written ",
                          "with output.state: false"));
  return history;
}

void check_goes_on(const Journal& journal, const JobConfig& job, const std::string& where) {
  const EditSetting& setting = journal.settings()[journal.batches().back().setting];
  if (setting.method != job.method)
    throw ConfigError(cat(where, "editor.method: expected ", setting.method, " as there, got ", job.method,
                          ": a state fits the method that made it"));
  check_same_options(parse_config(setting.editor, "the earlier job's editor"), job.editor_options, where);
}

void check_base(const EditHistory& history, const std::string& base_hash, const std::string& where) {
  const JournalBase& base = history.journal().base();
  if (base.weights != base_hash)
    throw ConfigError(cat(where, "the edits of another model: expected ", base.weights, ", got ", base_hash,
                          ": go on with the model that it was made from (", base.folder, ")"));
}

EarlierOutput::EarlierOutput(const JobConfig& job, std::span<const EditRequest> requests, const ModelConfig& config)
    : where_(cat("continue_from: ", job.continue_from->string(), ": ")),
      history_(read_whole_history(*job.continue_from, config, where_, "edit all requests again without continue_from")),
      requests_(history_.journal().requests()) {
  const Journal& journal = history_.journal();
  if (journal.batches().empty()) throw ConfigError(cat(where_, "no edit stands in it"));
  check_goes_on(journal, job, where_);
  for (const EditRequest& request : requests)
    if (journal.has(request.id))
      throw ConfigError(cat(where_, "request ", request.id, ": one of this id was edited there already: expected ids ",
                            "that tell all requests apart: give this one another 'id'"));
}

const EditHistory& EarlierOutput::history(const std::string& base_hash) const {
  check_base(history_, base_hash, where_);
  return history_;
}

std::vector<JobFact> job_facts(const JobConfig& job, const ModelFiles& files, std::span<const EditRequest> requests) {
  std::string lines;
  for (const EditRequest& request : requests) lines += to_json_line(request) + "\n";
  return {{"the version of lancet", std::string(kVersion)},
          {"the job", to_yaml(job.resolved)},
          {"the model's config.json", files.checkpoint.config_text()},
          {"the dtype", std::string(dtype_name(job.run.dtype.value_or(files.config.dtype)))},
          {"the requests", std::move(lines)}};
}

void check_same(Communicator& communicator, std::span<const JobFact> facts) {
  if (communicator.size() == 1) return;
  std::string own;
  communicator.run_collectively("compare", [&] {
    for (const auto& [name, value] : facts) own += ContentHash().add(value).hex();
  });
  const std::vector<std::string> all = communicator.gather(own);
  const size_t length = own.size() / facts.size();
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    for (size_t i = 0; i < facts.size(); ++i)
      if (all[rank].compare(i * length, length, all[0], i * length, length) != 0)
        throw ConfigError(cat("rank ", rank, ": ", facts[i].first,
                              ": expected the same as on rank 0, got another. Start ",
                              "every rank with the same job, model and requests"));
  }
}

std::string same_content_hash(Communicator& communicator, const Checkpoint& checkpoint) {
  std::string hash;
  communicator.run_collectively("load", [&] { hash = checkpoint.content_hash(); });
  check_same(communicator, std::vector<JobFact>{{"the model's weights", hash}});
  return hash;
}

namespace {

bool keeps_history(const StreamParts& parts) { return parts.recorded && parts.ranks.is_root(); }

}  // namespace

StreamStart after_nothing(const StreamParts& parts) { return {.state = parts.editor.make_state()}; }

StreamStart after_output(const StreamParts& parts, std::optional<EditHistory> earlier) {
  StreamState stream;
  parts.ranks.run_collectively("progress", [&] {
    if (earlier) stream = {earlier->state(parts.editor.make_state()), earlier->changes()};
  });
  share_stream(stream, parts.inputs.files.config, parts.ranks);
  parts.transaction.rollback();
  restore_changes(stream.changes, parts.model, parts.transaction);
  StreamStart start{.state = std::move(stream.editor)};
  if (keeps_history(parts)) start.history = std::move(earlier);
  return start;
}

StreamStart after_standing(const StreamParts& parts, EditHistory earlier) {
  StreamStart start{.state = earlier.state(parts.editor.make_state())};
  if (keeps_history(parts)) start.history = std::move(earlier);
  return start;
}

StreamStart after_batches(const StreamParts& parts, StreamStart start, std::optional<EditProgress> done) {
  std::vector<std::string> records;
  if (done)
    for (const BatchReport& batch : done->batches) records.push_back(to_record(batch));
  records = broadcast_texts(parts.ranks, records);
  if (records.empty()) {
    if (done && keeps_history(parts)) start.history = std::move(done->history);
    return start;
  }
  start = after_output(parts, done ? std::optional(std::move(done->history)) : std::nullopt);
  for (size_t i = 0; i < records.size(); ++i) {
    start.batches.push_back(from_record(records[i], parts.batches[i].size()));
    start.batches.back().requests = parts.batches[i];
  }
  return start;
}

StreamStart after_interrupted(const StreamParts& parts, StreamStart start, ProgressStore* store) {
  std::optional<EditProgress> progress;
  parts.ranks.run_collectively("progress", [&] {
    if (store != nullptr) progress = store->load(parts.batches, parts.inputs.requests);
  });
  const size_t n_before = start.batches.size();
  start = after_batches(parts, std::move(start), std::move(progress));
  start.n_interrupted = static_cast<int64_t>(start.batches.size() - n_before);
  if (start.n_interrupted > 0)
    log_line(
        cat("edit  ", start.n_interrupted, " of ", parts.batches.size(), " batches taken from an interrupted run"));
  return start;
}

}  // namespace lancet
