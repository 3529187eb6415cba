// The edits that stand in a session: its model's weights are the unedited ones with these added in their order.
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
  /// Both outlive this.
  ActiveEdits(const ModelFiles& files, CausalLM& model);

  WeightTransaction& transaction() { return transaction_; }
  bool empty() const { return batches() == 0; }
  size_t batches() const { return kept_.history ? kept_.history->batches().size() : 0; }
  /// Returns the history of a model that may have no edits.
  EditHistory history() const;
  /// Returns the changes of a history, which must be there.
  std::vector<WeightChanges> all_changes() const { return kept_.history->all_changes(); }
  const Journal& journal() const { return kept_.history->journal(); }
  /// Returns the last batch of a history, which must be there.
  const EditedBatch& last_batch() const { return kept_.history->batches().back(); }

  /// Whether an edit of this id stands.
  bool has(const std::string& id) const { return kept_.history && journal().has(id); }
  /// Returns ids after all that stand or stood (journal/journal.h).
  std::vector<std::string> new_ids(std::span<const std::string> taken, size_t count) const {
    return lancet::new_ids(kept_.history ? journal() : Journal({}), taken, count);
  }
  /// Throws: ConfigError for no request, and for ids that are equal or stand already.
  void check_ids(std::span<const EditRequest> requests) const;

  /// The weights that the next batch is made on.
  void put_exact();
  /// The weights that `use` puts, while it runs; then those that the model had, to the bit, also where it throws.
  void while_changing(const std::function<void(const PutWeights& put)>& use);
  /// The weights as the edits leave them, from the unedited ones on: the same additions in the same order give the same
  /// bits.
  void put_back();

  /// `history`: these edits and one more batch, whose changes the transaction has.
  void take(EditHistory history);
  /// Other edits; put_back() applies them. `n_known`: as many of the first batches as these have.
  void exchange(EditHistory history, size_t n_known);
  /// How they hold on the weights as the edits leave them. Where there are some.
  void note_measured(const std::map<std::string, MeasuredEdit>& edits);
  /// The last batch; one that was written leaves an entry.
  void undo_last();
  /// What a reader may have by now: what stands is not forgotten without an entry.
  void note_written() { kept_.n_written = batches(); }

  /// Which edits stand, to be put back where a change of them fails.
  struct Kept {
    std::optional<EditHistory> history = {};  ///< nullopt: there never was one
    /// What the method did after each batch while it was the last; nullopt: not known.
    std::vector<std::optional<std::vector<WeightChanges>>> finishes = {};
    size_t n_written = 0;  ///< batches that somebody may have read by now
  };
  const Kept& kept() const { return kept_; }
  void put(Kept kept) { kept_ = std::move(kept); }

  /// Whether it is known what the method does after the last batch. It is not where batches that came after it are
  /// gone.
  bool has_finish() const { return empty() || kept_.finishes.back().has_value(); }
  void set_finish(std::vector<WeightChanges> changes);

 private:
  const ModelFiles& files_;
  CausalLM& model_;
  WeightTransaction transaction_;
  Kept kept_;
};

}  // namespace lancet
