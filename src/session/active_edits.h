// The current edits of a session. The weights of its model are the unedited weights plus these edits, in their order.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"
#include "lancet/models/model_files.h"
#include "lancet/session/asked_weights.h"

namespace lancet {

class ActiveEdits {
 public:
  /// Both arguments must outlive this object.
  ActiveEdits(const ModelFiles& files, CausalLM& model);

  WeightTransaction& transaction() { return transaction_; }
  bool empty() const { return batches() == 0; }
  size_t batches() const { return kept_.history ? kept_.history->batches().size() : 0; }
  /// Returns the history, which is empty if the model has no edits.
  EditHistory history() const;
  /// Returns all changes. There must be a history.
  std::vector<WeightChanges> all_changes() const { return kept_.history->all_changes(); }
  const Journal& journal() const { return kept_.history->journal(); }
  /// Returns the last batch. There must be a history.
  const EditedBatch& last_batch() const { return kept_.history->batches().back(); }

  /// Whether an edit with this id is among the current ones.
  bool has(const std::string& id) const { return kept_.history && journal().has(id); }
  /// Returns ids that follow all ids of current and removed edits (journal/journal.h).
  std::vector<std::string> new_ids(std::span<const std::string> taken, size_t count) const {
    return lancet::new_ids(kept_.history ? journal() : Journal({}), taken, count);
  }
  /// Throws: ConfigError if there are no requests, or if an id occurs twice or is already used.
  void check_ids(std::span<const EditRequest> requests) const;

  /// Puts the weights on which the next batch is made into the model.
  void put_exact();
  /// Runs `use`, which can put other weights into the model. Afterwards the model has exactly its earlier weights, also
  /// if `use` throws.
  void while_changing(const std::function<void(const PutWeights& put)>& use);
  /// Recomputes the weights from the unedited ones: the same additions in the same order give the same bits.
  void put_back();

  /// Takes a history that has the current edits and one more batch. The transaction already has the changes of that
  /// batch.
  void take(EditHistory history);
  /// Replaces the edits; put_back() then applies them. `n_known`: how many of the first batches are the same as now.
  void exchange(EditHistory history, size_t n_known);
  /// Notes how well the edits hold on the current weights. There must be some.
  void note_measured(const std::map<std::string, MeasuredEdit>& edits);
  /// Removes the last batch. If it was written to an output, the journal gets an entry about it.
  void undo_last();
  /// Notes that the current batches were written. From now on, a removed one leaves an entry in the journal.
  void note_written() { kept_.n_written = batches(); }

  /// The current edits, as kept to be restored if a change fails.
  struct Kept {
    std::optional<EditHistory> history = {};  ///< nullopt: there were never any edits
    /// For each batch, the changes that the method made after it while it was the last one; nullopt: not known.
    std::vector<std::optional<std::vector<WeightChanges>>> finishes = {};
    size_t n_written = 0;  ///< number of batches that were written, so that somebody may have read them
  };
  const Kept& kept() const { return kept_; }
  void put(Kept kept) { kept_ = std::move(kept); }

  /// Whether the changes are known that the method makes after the last batch. They are not if later batches were
  /// removed.
  bool has_finish() const { return empty() || kept_.finishes.back().has_value(); }
  void set_finish(std::vector<WeightChanges> changes);

 private:
  const ModelFiles& files_;
  CausalLM& model_;
  WeightTransaction transaction_;
  Kept kept_;
};

}  // namespace lancet
