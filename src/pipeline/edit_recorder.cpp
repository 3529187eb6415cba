#include "lancet/pipeline/edit_recorder.h"

#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "lancet/core/hash.h"
#include "lancet/models/tensor_io.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/runtime/devices.h"

namespace lancet {
namespace {

/// What open_tokenizer() may read.
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
    recorded.entry.columns = outcome.columns;  // RECT makes changes dense that had columns
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

}  // namespace lancet
