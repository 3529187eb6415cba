#include "active_edits.h"

#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/export/output_form.h"
#include "lancet/pipeline/edit_recorder.h"

namespace lancet {
namespace {

/// Keeps a copy of weights of a model, and puts them back at the end. Nothing is computed for that, because a
/// computation could fail.
class KeptWeights {
 public:
  KeptWeights(CausalLM& model, const std::vector<WeightTransaction::Entry>& entries) : model_(model) {
    for (const WeightTransaction::Entry& entry : entries)
      kept_.emplace_back(entry.id, model.weight(entry.id).to(entry.original.device()));
  }
  ~KeptWeights() { put(); }
  KeptWeights(const KeptWeights&) = delete;
  KeptWeights& operator=(const KeptWeights&) = delete;

  void put() const {
    const torch::NoGradGuard no_grad;
    for (const auto& [id, weight] : kept_) model_.put_weight(id, weight);
  }

 private:
  CausalLM& model_;
  std::vector<std::pair<WeightId, Tensor>> kept_;  ///< the weights, on the devices where the transaction solves
};

}  // namespace

ActiveEdits::ActiveEdits(const ModelFiles& files, CausalLM& model)
    : files_(files),
      model_(model),
      transaction_(model, [&files, &model](WeightId id) { return stored_weight(files, model, id); }) {}

EditHistory ActiveEdits::history() const {
  return kept_.history ? *kept_.history : EditHistory(journal_base(files_, files_.checkpoint.content_hash()));
}

void ActiveEdits::check_ids(std::span<const EditRequest> requests) const {
  if (requests.empty()) throw ConfigError("requests: expected at least one, got none");
  std::set<std::string> known;
  for (const EditRequest& request : requests)
    if (!known.insert(request.id).second || has(request.id))
      throw ConfigError(cat("requests: expected ids that differ from each other and from those of earlier edits, got '",
                            visible_text(request.id), "' twice"));
}

void ActiveEdits::put_exact() {
  if (!kept_.history || kept_.history->finish().empty()) return transaction_.put_exact();
  transaction_.rollback();
  restore_changes(kept_.history->changes(), model_, transaction_);
}

void ActiveEdits::while_changing(const std::function<void(const PutWeights& put)>& use) {
  std::optional<KeptWeights> kept;
  AskedWeights there = AskedWeights::kEdited;
  use([&](AskedWeights weights) {
    if (weights == there) return;
    if (!kept) kept.emplace(model_, transaction_.entries());
    if (weights == AskedWeights::kUnedited)
      transaction_.put_unedited();
    else
      kept->put();
    there = weights;
  });
}

void ActiveEdits::put_back() {
  transaction_.filter_with({});
  transaction_.write_as({});
  transaction_.rollback();
  if (kept_.history) restore_changes(kept_.history->all_changes(), model_, transaction_);
  transaction_.round_as_written();
}

void ActiveEdits::take(EditHistory history) {
  kept_.history = std::move(history);
  kept_.finishes.emplace_back(kept_.history->finish());
}

void ActiveEdits::exchange(EditHistory history, size_t n_known) {
  kept_.history = std::move(history);
  kept_.finishes.resize(n_known);
  kept_.finishes.resize(batches());
  kept_.n_written = n_known;
}

void ActiveEdits::note_measured(const std::map<std::string, MeasuredEdit>& edits) {
  Journal& journal = kept_.history->journal();
  journal.add_measure(journal.measured_on(), journal.batches().back().weights, edits);
}

void ActiveEdits::undo_last() {
  const size_t left = batches() - 1;
  if (left < kept_.n_written) {
    UndoEntry entry{.when = utc_now(), .mode = UndoMode::kLast, .keeps = left};
    for (const EditRecord& edit : journal().batches().back().edits) entry.edits.push_back(edit.request.id);
    kept_.history->undo(entry);
  } else {
    kept_.history->forget_last_batch({});
  }
  kept_.finishes.resize(left);
  kept_.n_written = std::min(kept_.n_written, left);
  if (left > 0 && kept_.finishes.back()) set_finish(*kept_.finishes.back());
}

void ActiveEdits::set_finish(std::vector<WeightChanges> changes) {
  kept_.finishes.back() = changes;
  kept_.history->set_finish(std::move(changes), files_.config);
}

}  // namespace lancet
