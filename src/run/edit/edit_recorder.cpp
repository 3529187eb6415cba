#include "edit_recorder.h"

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

}  // namespace

JournalBase journal_base(const ModelFiles& files, std::string weights_hash) {
  return {.weights = std::move(weights_hash),
          .config = ContentHash().add(files.checkpoint.config_text()).hex(),
          .tokenizer = tokenizer_hash(files.checkpoint),
          .folder = files.checkpoint.folder().string()};
}

EditRecorder::EditRecorder(const ModelFiles& files, const Editor& editor, RecordedSetting setting)
    : files_(files), editor_(editor), setting_(std::move(setting)) {}

void EditRecorder::begin(const EditorState& state, const WeightTransaction& transaction) {
  systems_.clear();
  state_before_ = state;
  count(transaction);
}

void EditRecorder::count(const WeightTransaction& transaction) {
  counts_before_.clear();
  for (const WeightTransaction::Entry& entry : transaction.entries()) counts_before_[entry.id] = entry.deltas.size();
}

void EditRecorder::end(std::span<const EditRequest> requests, const EditOutcome& outcome, const EditorState& state,
                       const WeightTransaction& transaction) {
  entry_ = {.setting = history().journal().add_setting(setting_.setting),
            .when = utc_now(),
            .edits = records_of(requests),
            .weights = hashes_of(transaction)};
  for (SolvedSystem& system : systems_) system.change -= static_cast<int64_t>(count_before(system.id));
  batch_ = {.changes = changes_behind(transaction),
            .systems = std::move(systems_),
            .state = step_between(state_before_, state)};
  if (has_columns(batch_.changes)) entry_.columns = outcome.columns;  // RECT makes changes dense that had columns
  systems_.clear();
}

void EditRecorder::close(const BatchReport& report) {
  entry_.report = nlohmann::ordered_json::parse(to_record(report));
  history().add(std::move(entry_), std::move(batch_), files_.config);
}

void EditRecorder::report_last(const BatchReport& report) {
  history().journal().set_last_report(nlohmann::ordered_json::parse(to_record(report)));
}

EditHistory& EditRecorder::history() {
  if (!history_) history_.emplace(setting_.base());
  return *history_;
}

size_t EditRecorder::count_before(WeightId id) const {
  const auto found = counts_before_.find(id);
  return found == counts_before_.end() ? 0 : found->second;
}

std::vector<EditRecord> EditRecorder::records_of(std::span<const EditRequest> requests) const {
  std::vector<EditRecord> records;
  if (editor_.needs().subject) {
    const std::vector<PreparedRequest> prepared =
        prepare_requests(*files_.tokenizer, requests, std::vector<std::string>{"{}"}, editor_.compat());
    for (size_t i = 0; i < requests.size(); ++i)
      records.push_back({requests[i], prepared[i].prompts[0].ids, prepared[i].target, prepared[i].prompts[0].lookup});
  } else {
    const std::vector<TokenizedRequest> tokenized = tokenize_requests(*files_.tokenizer, requests);
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

std::vector<WeightChanges> EditRecorder::changes_behind(const WeightTransaction& transaction) const {
  std::vector<WeightChanges> changes;
  for (const WeightTransaction::Entry& entry : transaction.entries()) {
    WeightChanges own{entry.id, {}};
    for (size_t i = count_before(entry.id); i < entry.deltas.size(); ++i)
      own.deltas.push_back(moved_to(entry.deltas[i], Placement::host()));
    if (!own.deltas.empty()) changes.push_back(std::move(own));
  }
  return changes;
}

}  // namespace lancet
