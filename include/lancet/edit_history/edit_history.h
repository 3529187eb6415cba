// A model's edits as data: their journal, and for each batch its changes, the systems they were solved from, and the
// state that the method carried on. The edited weights are the unedited ones plus the changes in order; this gives the
// same bytes again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lancet/deltas/solved_system.h"
#include "lancet/deltas/stream_state.h"
#include "lancet/journal/journal.h"

namespace lancet {

/// What one batch of the journal did. The tensors are on the host.
struct EditedBatch {
  /// Changes of this batch alone, in the order of each weight's first change.
  std::vector<WeightChanges> changes = {};
  std::vector<SolvedSystem> systems = {};  ///< empty: not kept, or the method has none
  StateStep state = {};                    ///< how the batch changed the method's state
};

/// Which parts of a history are written.
enum class HistoryParts {
  kAll,
  /// Changes without their systems: no further edits can build on it, and single edits cannot leave their batches.
  kChanges
};

struct HistoryWriting {
  HistoryParts parts = HistoryParts::kAll;
  std::filesystem::path earlier = {};  ///< folder of an earlier write(), whose files of equal names are linked
};

class EditHistory {
 public:
  explicit EditHistory(JournalBase base) : journal_(std::move(base)) {}

  /// Loads a history from `folder` as write() leaves it. Throws: CheckpointError for files that are damaged or missing,
  /// or that do not fit each other or the model's shapes.
  static EditHistory load(const std::filesystem::path& folder, const ModelConfig& config) {
    return load(folder, Journal::read(folder), config);
  }
  /// Loads a history with the folder's journal, which was read already. Throws: as load() above.
  static EditHistory load(const std::filesystem::path& folder, Journal journal, const ModelConfig& config);

  const Journal& journal() const { return journal_; }
  /// For changing settings, reports and measures only. Use add() and undo() for batches.
  Journal& journal() { return journal_; }
  /// Returns the changes of each of journal().batches().
  const std::vector<EditedBatch>& batches() const { return batches_; }
  /// Returns what the method did after the last batch. A further batch starts without it.
  const std::vector<WeightChanges>& finish() const { return finish_; }

  /// Returns whether the batches have their systems and their steps of the method's state.
  bool has_solved() const { return has_solved_; }

  /// Adds a batch and fills in the entry's hashes.
  void add(BatchEntry entry, EditedBatch batch, const ModelConfig& config);
  /// Sets what the method did after the current batches; empty: nothing. Adding another batch removes it.
  void set_finish(std::vector<WeightChanges> changes, const ModelConfig& config);
  /// Removes the batches after the first undo.keeps.
  void undo(const UndoEntry& undo);
  /// Calls Journal::forget_last_batch(). `finish`: what the method did after the batches that are left.
  void forget_last_batch(std::vector<WeightChanges> finish);

  /// Returns the method's state after the last batch. `fresh`: the result of Editor::make_state().
  EditorState state(EditorState fresh) const;
  /// Returns the changes of all batches, weight by weight, without finish().
  std::vector<WeightChanges> changes() const;
  /// Returns the changes of all batches with finish(): the whole difference to the unedited weights.
  std::vector<WeightChanges> all_changes() const;

  /// Writes into the existing folder: journal.jsonl; changes/ and solved/ with a sealed file for each batch, and one
  /// for finish(), each named by its hash. Throws: CheckpointError if writing fails.
  void write(const std::filesystem::path& folder, const ModelConfig& config, const HistoryWriting& options = {}) const;

 private:
  explicit EditHistory(Journal journal) : journal_(std::move(journal)) {}

  Journal journal_;
  std::vector<EditedBatch> batches_;  ///< one for each batch of the journal
  std::vector<WeightChanges> finish_;
  bool has_solved_ = true;
};

}  // namespace lancet
