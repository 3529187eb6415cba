// Wraps the job's editor: edits only the first requests of a batch, and measures what the whole job will cost.
#pragma once

#include <memory>
#include <vector>

#include "lancet/editing/editor.h"
#include "lancet/outcome/batch_report.h"

namespace lancet {

/// The measurements of one run of the editor. A stage without a name did not run.
struct EditMeasurements {
  int64_t edited = 0;    ///< number of edited requests
  int64_t layers = 0;    ///< number of edited layers
  StageCost values;      ///< cost of the edited requests' values
  int64_t n_values = 0;  ///< number of values for all of the job's requests
  double mean_steps = 0;
  bool one_by_one = false;      ///< whether the method edits requests one after another, so that none run together
  StageCost together;           ///< cost of a few steps of the job's largest batches of values
  int64_t n_together = 0;       ///< number of requests in those batches
  double together_begin_s = 0;  ///< seconds before the first step
  double together_step_s = 0;
  int64_t halvings = 0;  ///< how often those batches were halved because memory did not suffice
  StageCost weights;     ///< cost of the edited requests without their values
  StageCost finish;      ///< cost of what is done once, after the last batch
  StageCost keys;        ///< cost of collecting keys at one layer
  int64_t keyed = 0;     ///< number of requests for which they were collected
};

class RehearsedEditor final : public Editor {
 public:
  /// `all`: the job's requests. They and `measured` must outlive this object. edit() gets some of the requests, edits
  /// the first `n_edited`, and reports empty outcomes for the others.
  RehearsedEditor(std::shared_ptr<const Editor> editor, const std::vector<EditRequest>& all, int64_t n_edited,
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
  std::shared_ptr<const Editor> editor_;
  const std::vector<EditRequest>& all_;
  int64_t n_edited_;
  EditMeasurements& measured_;
};

}  // namespace lancet
