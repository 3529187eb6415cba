#include "lancet/pipeline/edit_recorder.h"

#include <torch/types.h>
#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/progress.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/io/files.h"
#include "lancet/io/output_folder.h"
#include "lancet/models/tensor_io.h"
#include "lancet/outcome/report_json.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/runtime/devices.h"

namespace lancet {
namespace {

/// The files that open_tokenizer() may read.
constexpr std::string_view kTokenizerFiles[] = {
    "tokenizer.json", "tokenizer.model",   "tokenizer_config.json",  "vocab.json",
    "merges.txt",     "added_tokens.json", "special_tokens_map.json"};

std::string tokenizer_hash(const Checkpoint& checkpoint) {
  ContentHash hash;
  for (const std::shared_ptr<const MappedFile>& file : checkpoint.side_files()) {
    const std::string name = file->path().filename().string();
    if (std::ranges::find(kTokenizerFiles, name) != std::end(kTokenizerFiles)) hash.add(name).add(hash_of_bytes(*file));
  }
  return hash.hex();
}

size_t count_of(const ChangeCounts& counts, WeightId id) {
  const auto found = counts.find(id);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

ChangeCounts count_changes(const WeightTransaction& transaction) {
  ChangeCounts counts;
  for (const WeightTransaction::Entry& entry : transaction.entries()) counts[entry.id] = entry.deltas.size();
  return counts;
}

std::vector<WeightChanges> changes_since(const ChangeCounts& before, const WeightTransaction& transaction) {
  std::vector<WeightChanges> changes;
  for (const WeightTransaction::Entry& entry : transaction.entries()) {
    WeightChanges own{entry.id, {}};
    for (size_t i = count_of(before, entry.id); i < entry.deltas.size(); ++i)
      own.deltas.push_back(moved_to(entry.deltas[i], Placement::host()));
    if (!own.deltas.empty()) changes.push_back(std::move(own));
  }
  return changes;
}

JournalBase journal_base(const ModelFiles& files, std::string weights_hash) {
  return {.weights = std::move(weights_hash),
          .config = ContentHash().add(files.checkpoint.config_text()).hex(),
          .tokenizer = tokenizer_hash(files.checkpoint),
          .folder = files.checkpoint.folder().string()};
}

EditRecorder::EditRecorder(const ModelFiles& files, const Editor& editor, RecordedSetting setting)
    : files_(files), editor_(editor), setting_(std::move(setting)) {}

BatchStart EditRecorder::begin(const EditorState& state, const WeightTransaction& transaction) {
  systems_.clear();
  return {state, count_changes(transaction)};
}

RecordedBatch EditRecorder::end(const BatchStart& start, std::span<const EditRequest> requests,
                                const EditOutcome& outcome, const EditorState& state,
                                const WeightTransaction& transaction) {
  RecordedBatch recorded{.entry = {.setting = history().journal().add_setting(setting_.setting),
                                   .when = utc_now(),
                                   .edits = records_of(requests),
                                   .weights = hashes_of(transaction)},
                         .batch = {.changes = changes_since(start.counts, transaction),
                                   .systems = std::exchange(systems_, {}),
                                   .state = step_between(start.state, state)}};
  for (SolvedSystem& system : recorded.batch.systems)
    system.change -= static_cast<int64_t>(count_of(start.counts, system.id));
  if (has_columns(recorded.batch.changes))
    recorded.entry.columns = outcome.columns;  // RECT makes a low-rank change dense
  return recorded;
}

void EditRecorder::add(RecordedBatch batch, const BatchReport& report) {
  batch.entry.report = nlohmann::ordered_json::parse(to_record(report));
  history().add(std::move(batch.entry), std::move(batch.batch), files_.config);
}

void EditRecorder::report_last(const BatchReport& report) {
  history().journal().set_last_report(nlohmann::ordered_json::parse(to_record(report)));
}

EditHistory& EditRecorder::history() {
  if (!history_) history_.emplace(setting_.base());
  return *history_;
}

std::vector<EditRecord> EditRecorder::records_of(std::span<const EditRequest> requests) const {
  std::vector<EditRecord> records;
  const TargetForm form = target_form(editor_.target_rule(), files_.config, *files_.tokenizer);
  if (editor_.needs().subject) {
    const std::vector<PreparedRequest> prepared =
        prepare_requests(*files_.tokenizer, requests, std::vector<std::string>{"{}"}, form);
    for (size_t i = 0; i < requests.size(); ++i)
      records.push_back({requests[i], prepared[i].prompts[0].ids, prepared[i].target, prepared[i].prompts[0].lookup});
  } else {
    const std::vector<TokenizedRequest> tokenized = tokenize_requests(*files_.tokenizer, requests, form.end);
    for (size_t i = 0; i < requests.size(); ++i)
      records.push_back({requests[i], tokenized[i].prompt, tokenized[i].target, -1});
  }
  return records;
}

std::vector<WeightHash> EditRecorder::hashes_of(const WeightTransaction& transaction) const {
  std::vector<WeightHash> hashes;
  for (const WeightTransaction::Entry& entry : transaction.entries()) {
    const Tensor stored = entry.master.to(to_scalar_type(files_.config.dtype)).to(Placement::host()).contiguous();
    const TensorSource source = to_source(weight_name(files_.config, entry.id), stored);
    hashes.push_back({source.name, ContentHash().add(source.bytes).hex()});
  }
  return hashes;
}

namespace {

/// Increase the number when the files' content changes.
constexpr const char* kFormat = "lancet-progress-4";
constexpr const char* kNotUsed = "the progress of an interrupted run is not used: ";

std::vector<std::vector<int64_t>> requests_of(const std::vector<BatchReport>& batches) {
  std::vector<std::vector<int64_t>> requests;
  for (const BatchReport& batch : batches) requests.push_back(batch.requests);
  return requests;
}

/// Hashes everything that progress.json says, and the journal beside it, which the reports of the batches are read
/// from.
std::string progress_hash(const std::string& key, size_t n_batches, const Journal& journal) {
  return ContentHash().add(kFormat).add(key).add(static_cast<int64_t>(n_batches)).add(journal.text()).hex();
}

BatchReport report_of(const BatchEntry& batch) {
  if (!batch.report.is_null()) return from_record(batch.report.dump(), batch.edits.size());
  BatchReport report;
  report.outcome.requests.resize(batch.edits.size());
  report.outcome.columns = batch.columns;
  return report;
}

}  // namespace

EditProgress progress_of(EditHistory history, size_t n_earlier) {
  EditProgress progress{{}, std::move(history)};
  const std::vector<BatchEntry>& batches = progress.history.journal().batches();
  for (size_t i = n_earlier; i < batches.size(); ++i) progress.batches.push_back(report_of(batches[i]));
  return progress;
}

std::string ProgressStore::key(const std::vector<std::vector<int64_t>>& batches,
                               std::span<const EditRequest> requests) const {
  ContentHash hash;
  hash.add(kFormat).add(kVersion).add(setting_key_);
  for (const std::vector<int64_t>& batch : batches) {
    hash.add(static_cast<int64_t>(batch.size()));
    for (const int64_t index : batch) hash.add(to_json_line(requests[static_cast<size_t>(index)]));
  }
  return hash.hex();
}

void ProgressStore::save(const EditProgress& progress, std::span<const EditRequest> requests) {
  const std::string key = this->key(requests_of(progress.batches), requests);
  make_unfinished(unfinished_);
  OutputFolder folder(folder_, IfExists::kReplace, kProgressKind);
  progress.history.write(folder.staging(), config_, {.earlier = is_sound_ ? folder_ : std::filesystem::path()});
  write_text_file(folder.staging() / kProgressFile,
                  Json{{"format", kFormat},
                       {"key", key},
                       {"batches", progress.batches.size()},
                       {"content_hash", progress_hash(key, progress.batches.size(), progress.history.journal())}}
                      .dump());
  folder.commit();
  is_sound_ = true;
}

std::optional<EditProgress> ProgressStore::load(const std::vector<std::vector<int64_t>>& batches,
                                                std::span<const EditRequest> requests) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder_ / kProgressFile, ignored)) return std::nullopt;
  try {
    std::optional<EditProgress> progress = read(batches, requests);
    is_sound_ = true;
    return progress;
  } catch (const Error& error) {
    log_warning(cat(kNotUsed, error.what()));
  } catch (const JsonProblem& problem) {
    log_warning(cat(kNotUsed, (folder_ / kProgressFile).string(), ": ", problem.what()));
  } catch (const Json::exception& error) {
    log_warning(cat(kNotUsed, (folder_ / kProgressFile).string(), ": ", error.what()));
  }
  return std::nullopt;
}

EditProgress ProgressStore::read(const std::vector<std::vector<int64_t>>& batches,
                                 std::span<const EditRequest> requests) const {
  const std::filesystem::path path = folder_ / kProgressFile;
  const Json json = parse_ordered_json(read_text_file(path, "progress"));
  const auto key = json.at("key").get<std::string>();
  const Json& finished = json.at("batches");
  const size_t n = finished.is_number_unsigned() ? finished.get<size_t>() : 0;
  if (json.at("format") != kFormat || n == 0 || n > batches.size() ||
      key != this->key({batches.begin(), batches.begin() + static_cast<int64_t>(n)}, requests))
    throw ConfigError(cat(path.string(), ": it is of another job, or of other first batches"));
  EditHistory history = EditHistory::load(folder_, config_);
  const size_t n_standing = history.journal().batches().size();
  if (n > n_standing || json.at("content_hash") != progress_hash(key, n, history.journal()))
    throw CheckpointError(cat(path.string(), ": its content has not the hash that it was saved with: it is damaged"));
  EditProgress progress = progress_of(std::move(history), n_standing - n);
  for (size_t i = 0; i < n; ++i) {
    if (progress.batches[i].outcome.requests.size() != batches[i].size())
      throw CheckpointError(cat(path.string(), ": the journal's batches are others than the job's: it is damaged"));
    progress.batches[i].requests = batches[i];
  }
  return progress;
}

}  // namespace lancet
