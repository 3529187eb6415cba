// A model's edits as data: the journal of them, and beside it each batch's changes, what they were solved from, and
// what the method carried on. The weights are the unedited ones with the changes added in their order: the same bytes
// again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lancet/deltas/solved_system.h"
#include "lancet/deltas/stream_state.h"
#include "lancet/journal/journal.h"

namespace lancet {

/// What a batch of the journal did. Tensors on the host.
struct EditedBatch {
  std::vector<WeightChanges> changes = {};  ///< its own, in the order of the first one
  std::vector<SolvedSystem> systems = {};   ///< empty: not kept, or the method has none
  StateStep state = {};                     ///< what the batch did to the method's state
};

/// What of a history is written.
enum class HistoryParts {
  kAll,
  kChanges  ///< changes without what they were solved from: nothing goes on from it, and single edits stay in their
            ///< batches
};

struct HistoryWriting {
  HistoryParts parts = HistoryParts::kAll;
  std::filesystem::path earlier = {};  ///< an earlier write()'s, whose files of equal names are linked to
};

class EditHistory {
 public:
  explicit EditHistory(JournalBase base) : journal_(std::move(base)) {}

  /// `folder`: as write() leaves it. Throws: CheckpointError for what is damaged, absent, or does not belong to each
  /// other or to the model's shapes.
  static EditHistory load(const std::filesystem::path& folder, const ModelConfig& config) {
    return load(folder, Journal::read(folder), config);
  }
  /// Loads it likewise, with the folder's journal, which was read already.
  static EditHistory load(const std::filesystem::path& folder, Journal journal, const ModelConfig& config);

  const Journal& journal() const { return journal_; }
  /// Settings, reports and measures alone; batches come and go by add() and undo().
  Journal& journal() { return journal_; }
  /// Changes of each of journal().batches().
  const std::vector<EditedBatch>& batches() const { return batches_; }
  /// What the method did after the last batch; a next batch goes on without it.
  const std::vector<WeightChanges>& finish() const { return finish_; }

  /// Whether the batches have what they were solved from, and their steps of the method's state.
  bool has_solved() const { return has_solved_; }

  /// Fills in the entry's hashes.
  void add(BatchEntry entry, EditedBatch batch, const ModelConfig& config);
  /// Sets what the method did after the batches that stand; another batch takes it away again. Nothing: none.
  void set_finish(std::vector<WeightChanges> changes, const ModelConfig& config);
  /// Takes the batches after the first undo.keeps away.
  void undo(const UndoEntry& undo);
  /// Journal::forget_last_batch. `finish`: of the batches that are left.
  void forget_last_batch(std::vector<WeightChanges> finish);

  /// Returns the method's state after the last batch. `fresh`: Editor::make_state().
  EditorState state(EditorState fresh) const;
  /// Returns all batches' changes, weight by weight, without finish().
  std::vector<WeightChanges> changes() const;
  /// Returns all batches' changes with finish(): what a model's weights differ by.
  std::vector<WeightChanges> all_changes() const;

  /// Writes into the existing folder: journal.jsonl; changes/ and solved/ with a sealed file for each batch, and one
  /// for finish(), whose name is its hash. Throws: CheckpointError when the disk refuses.
  void write(const std::filesystem::path& folder, const ModelConfig& config, const HistoryWriting& options = {}) const;

 private:
  explicit EditHistory(Journal journal) : journal_(std::move(journal)) {}

  Journal journal_;
  std::vector<EditedBatch> batches_;  ///< one for each of the journal's
  std::vector<WeightChanges> finish_;
  bool has_solved_ = true;
};

}  // namespace lancet
