#include "lancet/edits/edit_history.h"

#include <torch/types.h>

#include <algorithm>
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
    throw CheckpointError(cat((folder / kJournalFile).string(), ": ", kind,
                              ": expected 32 hexadecimal digits, got '", printable(hash), "'"));
  return folder / kind / (hash + ".safetensors");
}

/// A link to the file that lies under this name in `earlier`, else a new one.
template <typename Make>
void put(const Make& make, const fs::path& name, const fs::path& earlier) {
  std::error_code problem;
  if (!earlier.empty()) fs::create_hard_link(earlier / name.parent_path().filename() / name.filename(), name, problem);
  if (earlier.empty() || problem) make().write(name);
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
  history.has_solved_ = fs::exists(folder / kSolvedFolder);
  for (const BatchEntry& entry : history.journal_.batches()) {
    EditedBatch& batch = history.batches_.emplace_back();
    batch.changes = read_changes_file(file_of(folder, kChangesFolder, entry.changes), entry.changes, config);
    if (history.has_solved_)
      read_solved_file(file_of(folder, kSolvedFolder, entry.solved), entry.solved, config, batch);
  }
  if (const std::string& finish = history.journal_.finish(); !finish.empty())
    history.finish_ = read_changes_file(file_of(folder, kChangesFolder, finish), finish, config);
  return history;
}

void EditHistory::add(BatchEntry entry, EditedBatch batch, const ModelConfig& config) {
  entry.changes = changes_file(batch.changes, config).hash();
  entry.solved = solved_file(batch, config).hash();
  journal_.add_batch(std::move(entry));
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

void EditHistory::undo(UndoEntry undo) {
  const size_t keeps = undo.keeps;
  journal_.undo(std::move(undo));
  batches_.resize(keeps);
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

void EditHistory::write(const fs::path& folder, const ModelConfig& config, const HistoryWriting& options) const {
  make_folders(folder / kChangesFolder);
  const bool writes_solved = has_solved_ && options.parts == HistoryParts::kAll;
  if (writes_solved) make_folders(folder / kSolvedFolder);
  for (size_t i = 0; i < batches_.size(); ++i) {
    const BatchEntry& entry = journal_.batches()[i];
    put([&] { return changes_file(batches_[i].changes, config); }, file_of(folder, kChangesFolder, entry.changes),
        options.earlier);
    if (writes_solved)
      put([&] { return solved_file(batches_[i], config); }, file_of(folder, kSolvedFolder, entry.solved),
          options.earlier);
  }
  if (!finish_.empty())
    changes_file(finish_, config).write(file_of(folder, kChangesFolder, journal_.finish()));
  write_text_file(folder / kJournalFile, journal_.text());
}

}  // namespace lancet
