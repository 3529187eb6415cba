#include "lancet/edits/edit_history.h"

#include <torch/types.h>

#include <algorithm>
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
  for (const BatchEntry& entry : history.journal_.batches())
    history.batches_.push_back(load_data(folder, entry.data, config));
  if (const std::string& finish = history.journal_.finish(); !finish.empty())
    history.finish_ = load_data(folder, finish, config).changes;
  return history;
}

void EditHistory::add(BatchEntry entry, EditedBatch batch, const ModelConfig& config) {
  entry.data = BatchFile(batch, config).hash();
  journal_.add_batch(std::move(entry));
  batches_.push_back(std::move(batch));
  finish_.clear();
}

void EditHistory::set_finish(std::vector<WeightChanges> changes, const ModelConfig& config) {
  if (changes.empty()) return;
  journal_.add_finish(BatchFile({.changes = changes}, config).hash());
  finish_ = std::move(changes);
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

void EditHistory::write(const fs::path& folder, const ModelConfig& config) const {
  make_folders(folder / "data");
  for (size_t i = 0; i < batches_.size(); ++i)
    BatchFile(batches_[i], config).write(data_file(folder, journal_.batches()[i].data));
  if (!finish_.empty()) BatchFile({.changes = finish_}, config).write(data_file(folder, journal_.finish()));
  write_text_file(folder / kJournalFile, journal_.text());
}

}  // namespace lancet
