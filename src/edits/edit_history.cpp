#include "lancet/edits/edit_history.h"

#include <torch/types.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "batch_file.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

fs::path data_file(const fs::path& folder, const std::string& hash) {
  return folder / "data" / (hash + ".safetensors");
}

/// A hash is a file's name: nothing else may be one.
void check_hash(const std::string& hash, const fs::path& folder) {
  if (hash.size() != 32 || hash.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw CheckpointError(
        cat((folder / kJournalFile).string(), ": data: expected 32 hexadecimal digits, got '", hash, "'"));
}

EditedBatch load_data(const fs::path& folder, const std::string& hash, const ModelConfig& config) {
  check_hash(hash, folder);
  return read_batch_file(data_file(folder, hash), hash, config);
}

/// Throws: CheckpointError when the journal's entry is not the one that the data were written with.
void check_belongs(const BatchEntry& entry, const EditedBatch& batch) {
  const auto n_edits = static_cast<int64_t>(entry.edits.size());
  for (const WeightChanges& weight : batch.changes) {
    int64_t n_columns = 0;
    for (const WeightDelta& delta : weight.deltas)
      if (const auto* low_rank = std::get_if<LowRankDelta>(&delta)) n_columns += low_rank->right_RI.size(0);
    if (!entry.columns.empty() && n_columns > 0 && n_columns != static_cast<int64_t>(entry.columns.size()))
      throw CheckpointError(cat("columns: expected changes of ", entry.columns.size(), ", got ", n_columns));
  }
  std::set<std::pair<WeightId, int64_t>> known;
  for (const SolvedSystem& system : batch.systems) {
    if (!known.emplace(system.id, system.change).second)
      throw CheckpointError("systems: expected one of each change, got two");
    for (const std::vector<int64_t>& edits : system.edits)
      if (edits.empty() || std::ranges::any_of(edits, [&](int64_t edit) { return edit < 0 || edit >= n_edits; }))
        throw CheckpointError(cat("systems: expected keys of ", n_edits, " edits, got those of others"));
  }
}

void append(std::vector<WeightChanges>& to, const std::vector<WeightChanges>& more) {
  for (const WeightChanges& weight : more) {
    auto known = std::ranges::find_if(to, [&](const WeightChanges& each) { return each.id == weight.id; });
    if (known == to.end()) known = to.insert(to.end(), {weight.id, {}});
    known->deltas.insert(known->deltas.end(), weight.deltas.begin(), weight.deltas.end());
  }
}

}  // namespace

EditHistory EditHistory::load(const fs::path& folder, const ModelConfig& config) {
  EditHistory history{Journal::read(folder)};
  for (const BatchEntry& entry : history.journal_.batches()) {
    history.batches_.push_back(load_data(folder, entry.data, config));
    try {
      check_belongs(entry, history.batches_.back());
    } catch (const CheckpointError& error) {
      throw CheckpointError(cat(data_file(folder, entry.data).string(), ": ", error.what(), ": ", kJournalFile,
                                " and files of edits/data were mixed up"));
    }
  }
  if (const std::string& finish = history.journal_.finish(); !finish.empty())
    history.finish_ = load_data(folder, finish, config).changes;
  return history;
}

void EditHistory::add(BatchEntry entry, EditedBatch batch, const ModelConfig& config) {
  entry.data = BatchFile(batch, config).hash();
  journal_.add_batch(entry);
  batches_.push_back(std::move(batch));
  finish_.clear();
}

void EditHistory::set_finish(std::vector<WeightChanges> changes, const ModelConfig& config) {
  if (changes.empty()) return;
  journal_.add_finish(BatchFile({.changes = changes}, config).hash());
  finish_ = std::move(changes);
}

void EditHistory::undo(const UndoEntry& undo) {
  journal_.undo(undo);
  batches_.resize(undo.keeps);
  finish_.clear();
}

EditorState EditHistory::state(EditorState fresh) const {
  for (const EditedBatch& batch : batches_) advance(fresh, batch.state);
  return fresh;
}

std::vector<WeightChanges> EditHistory::changes() const {
  std::vector<WeightChanges> all;
  for (const EditedBatch& batch : batches_) append(all, batch.changes);
  return all;
}

std::vector<WeightChanges> EditHistory::all_changes() const {
  std::vector<WeightChanges> all = changes();
  append(all, finish_);
  return all;
}

std::vector<EditRequest> EditHistory::requests() const {
  std::vector<EditRequest> requests;
  for (const BatchEntry& batch : journal_.batches())
    for (const EditRecord& edit : batch.edits) requests.push_back(edit.request);
  return requests;
}

void EditHistory::write(const fs::path& folder, const ModelConfig& config) const {
  make_folders(folder / "data");
  for (size_t i = 0; i < batches_.size(); ++i)
    BatchFile(batches_[i], config).write(data_file(folder, journal_.batches()[i].data));
  if (!finish_.empty()) BatchFile({.changes = finish_}, config).write(data_file(folder, journal_.finish()));
  write_text_file(folder / kJournalFile, journal_.text());
}

}  // namespace lancet
