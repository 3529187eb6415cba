#include "lancet/edit_history/edit_history.h"

#include <torch/types.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "batch_file.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char *kChangesFolder = "changes", *kSolvedFolder = "solved";

/// A hash is a file's name: nothing else may be one.
fs::path file_of(const fs::path& folder, const char* kind, const std::string& hash) {
  if (hash.size() != 32 || hash.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw CheckpointError(cat((folder / kJournalFile).string(), ": ", kind, ": expected 32 hexadecimal digits, got '",
                              printable(hash), "'"));
  return folder / kind / (hash + ".safetensors");
}

/// A link to the file that lies under this name in `earlier`, else a new one.
template <typename Make>
void put(const Make& make, const fs::path& name, const fs::path& earlier) {
  std::error_code problem;
  if (!earlier.empty()) fs::create_hard_link(earlier / name.parent_path().filename() / name.filename(), name, problem);
  if (earlier.empty() || problem) make().write(name);
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

EditHistory EditHistory::load(const fs::path& folder, Journal journal, const ModelConfig& config) {
  EditHistory history{std::move(journal)};
  // Where no batch stands there is no folder, and nothing that is missing of the next ones.
  history.has_solved_ = history.journal_.batches().empty() || fs::exists(folder / kSolvedFolder);
  for (const BatchEntry& entry : history.journal_.batches()) {
    EditedBatch& batch = history.batches_.emplace_back();
    batch.changes = read_changes_file(file_of(folder, kChangesFolder, entry.changes), entry.changes, config);
    if (history.has_solved_)
      read_solved_file(file_of(folder, kSolvedFolder, entry.solved), entry.solved, config, batch);
    try {
      check_belongs(entry, batch);
    } catch (const CheckpointError& error) {
      throw CheckpointError(cat(file_of(folder, kChangesFolder, entry.changes).string(), ": ", error.what(), ": ",
                                kJournalFile, " and files of edits/ were mixed up"));
    }
  }
  if (const std::string& finish = history.journal_.finish(); !finish.empty())
    history.finish_ = read_changes_file(file_of(folder, kChangesFolder, finish), finish, config);
  return history;
}

void EditHistory::add(BatchEntry entry, EditedBatch batch, const ModelConfig& config) {
  entry.changes = changes_file(batch.changes, config).hash();
  entry.solved = solved_file(batch, config).hash();
  journal_.add_batch(entry);
  batches_.push_back(std::move(batch));
  finish_.clear();
}

void EditHistory::set_finish(std::vector<WeightChanges> changes, const ModelConfig& config) {
  const std::string hash = changes.empty() ? "" : changes_file(changes, config).hash();
  if (hash != journal_.finish()) journal_.add_finish(hash);
  finish_ = std::move(changes);
}

void EditHistory::forget_last_batch(std::vector<WeightChanges> finish) {
  journal_.forget_last_batch();
  batches_.pop_back();
  finish_ = std::move(finish);
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

void EditHistory::write(const fs::path& folder, const ModelConfig& config, const HistoryWriting& options) const {
  const bool writes_solved = has_solved_ && options.parts == HistoryParts::kAll && !batches_.empty();
  if (!batches_.empty() || !finish_.empty()) make_folders(folder / kChangesFolder);
  if (writes_solved) make_folders(folder / kSolvedFolder);
  for (size_t i = 0; i < batches_.size(); ++i) {
    const BatchEntry& entry = journal_.batches()[i];
    put([&] { return changes_file(batches_[i].changes, config); }, file_of(folder, kChangesFolder, entry.changes),
        options.earlier);
    if (writes_solved)
      put([&] { return solved_file(batches_[i], config); }, file_of(folder, kSolvedFolder, entry.solved),
          options.earlier);
  }
  if (!finish_.empty()) changes_file(finish_, config).write(file_of(folder, kChangesFolder, journal_.finish()));
  write_text_file(folder / kJournalFile, journal_.text());
}

}  // namespace lancet
