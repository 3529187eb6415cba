#include "lancet/editor_parts/repaired_editor.h"

#include <torch/types.h>

#include "lancet/editor_parts/trained_edit.h"
#include "lancet/spec/editor_spec.h"
#include "lancet/spec/read_option.h"
#include "wrapped_editor.h"

namespace lancet {
namespace {

class RepairedEditor final : public WrappedEditor {
 public:
  RepairedEditor(std::unique_ptr<Editor> method, TrainingOptions training, double whiten)
      : WrappedEditor(std::move(method)), training_(std::move(training)), whiten_(whiten) {}

  EditorNeeds needs() const override {
    EditorNeeds needs = method().needs();
    needs.backward = BackwardNeeds{.batch = training_.batch, .projects = true};
    ++needs.changes;
    return needs;
  }

  EditOutcome edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                   WeightTransaction& transaction) const override {
    const EditOutcome outcome = method().edit(context, requests, state, transaction);
    const std::vector<TokenizedRequest> texts = context.tokenize(requests, target_rule());
    const std::vector<WeightId> weights = targets(context.config());
    TrainingOptions training = training_;
    training.projection = [&](WeightId id) { return GradientProjection{.scale_II = kept_directions(context, id)}; };
    apply_changes(context, weights, train_in_stream(context, texts, weights, training, state), transaction);
    return outcome;
  }

 private:
  Tensor kept_directions(const EditContext& context, WeightId id) const {
    return method().needs().null_space ? context.null_space(id.layer).projector()
                                       : whitening(context, id.layer, whiten_);
  }

  TrainingOptions training_;
  double whiten_;
};

}  // namespace

std::unique_ptr<Editor> with_repair(std::unique_ptr<Editor> method, ConfigSection& editor) {
  if (!editor.has(EditorSpec::kRepair.key)) return method;
  ConfigSection repair = editor.section(EditorSpec::kRepair.key);
  TrainingOptions training{.objective = TrainingObjective::kTarget,
                           .stop_loss = 0,
                           .order = TrainingOrder::kBreadthFirst,
                           .projected = Projected::kSteps};
  training.steps = read(repair, RepairSpec::kSteps);
  training.lr = read(repair, RepairSpec::kLr);
  training.batch = read(repair, RepairSpec::kBatch);
  training.margin = read(repair, RepairSpec::kMargin);
  training.revisit = read(repair, RepairSpec::kRevisit);
  const double whiten = method->needs().null_space ? 0 : read(repair, RepairSpec::kWhiten);
  repair.finish();
  return std::make_unique<RepairedEditor>(std::move(method), std::move(training), whiten);
}

}  // namespace lancet
