// The job's editor, watched: it edits the first requests of a batch alone, and measures what the whole job will take.
#pragma once

#include <memory>
#include <vector>

#include "lancet/editing/editor.h"
#include "lancet/outcome/batch_report.h"

namespace lancet {

/// What was measured while the editor ran. A stage without a name did not take place.
struct EditMeasurements {
  int64_t edited = 0;    ///< requests
  int64_t layers = 0;    ///< that are edited
  StageCost values;      ///< cost of the edited requests' values
  int64_t n_values = 0;  ///< values of all of the job's requests
  double mean_steps = 0;
  bool one_by_one = false;      ///< the method takes requests one after another: nothing of them runs together
  StageCost together;           ///< the job's largest batches of values, a few steps
  int64_t n_together = 0;       ///< requests in them
  double together_begin_s = 0;  ///< seconds before the first step
  double together_step_s = 0;
  int64_t halvings = 0;  ///< halvings of those batches, for want of memory
  StageCost weights;     ///< cost of the edited requests: what is not values
  StageCost finish;      ///< what is done once, after the last batch
  StageCost keys;        ///< cost of one layer
  int64_t keyed = 0;     ///< requests that they were collected for
};

class RehearsedEditor final : public Editor {
 public:
  /// `all`: the job's requests, which outlive this as `measured` does. edit() then gets some of them, edits the first
  /// `n_edited`, and reports empty outcomes for the others.
  RehearsedEditor(std::unique_ptr<Editor> editor, const std::vector<EditRequest>& all, int64_t n_edited,
                  EditMeasurements& measured)
      : editor_(std::move(editor)), all_(all), n_edited_(n_edited), measured_(measured) {}

  EditorNeeds needs() const override { return editor_->needs(); }
  const ContextOptions* contexts() const override { return editor_->contexts(); }
  const ValueOptions* values() const override { return editor_->values(); }
  std::vector<int64_t> value_layers(const ModelConfig& config) const override { return editor_->value_layers(config); }
  TargetRule target_rule() const override { return editor_->target_rule(); }
  std::vector<WeightId> targets(const ModelConfig& config) const override { return editor_->targets(config); }
  EditorState make_state() const override { return editor_->make_state(); }
  EditOutcome edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                   WeightTransaction& transaction) const override;
  void finish(const EditContext& context, WeightTransaction& transaction) const override;

 private:
  std::unique_ptr<Editor> editor_;
  const std::vector<EditRequest>& all_;
  int64_t n_edited_;
  EditMeasurements& measured_;
};

}  // namespace lancet
