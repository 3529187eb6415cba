#include "lancet/editor_parts/filtered_editor.h"

#include <torch/types.h>
#include <map>
#include <optional>

#include "lancet/deltas/delta_filters.h"
#include "lancet/editor_parts/trained_edit.h"
#include "lancet/spec/editor_spec.h"
#include "lancet/spec/read_option.h"
#include "wrapped_editor.h"

namespace lancet {
namespace {

struct FilterOptions {
  std::optional<double> keep;      ///< RECT: share of entries
  std::optional<double> energy;    ///< REVIVE: share of squared singular values
  std::optional<double> log_base;  ///< PRUNE: base of the logarithm
};

/// The directions of each weight that stay unchanged.
using DominantOfWeight = std::map<WeightId, DominantSubspace>;

class FilteredEditor final : public WrappedEditor {
 public:
  FilteredEditor(std::unique_ptr<Editor> method, FilterOptions options)
      : WrappedEditor(std::move(method)), options_(options) {}

  EditorNeeds needs() const override {
    EditorNeeds needs = method().needs();
    needs.finish = needs.finish || options_.log_base.has_value();
    return needs;
  }

  EditOutcome edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                   WeightTransaction& transaction) const override {
    if (!options_.keep && !options_.energy) return method().edit(context, requests, state, transaction);
    DominantOfWeight& dominant = context.kept<DominantOfWeight>();
    if (options_.energy) find_dominant(context, transaction, dominant);
    transaction.filter_with([this, &dominant](WeightId id, const Tensor& weight, const WeightDelta& delta) {
      WeightDelta left = options_.energy ? keep_dominant(dominant.at(id), delta) : delta;
      return options_.keep ? keep_largest_relative(weight, left, *options_.keep) : left;
    });
    EditOutcome outcome = method().edit(context, requests, state, transaction);
    transaction.filter_with({});
    return outcome;
  }

  void finish(const EditContext& context, WeightTransaction& transaction) const override {
    method().finish(context, transaction);
    if (!options_.log_base) return;
    std::vector<std::pair<WeightId, WeightDelta>> corrections;
    for (const WeightTransaction::Entry& entry : transaction.entries()) {
      WeightDelta correction = context.solve(entry.id.layer, [&] {
        const Tensor base = entry.base.to(entry.master.device(), entry.master.scalar_type());
        const Tensor change = entry.master - base;
        return DenseDelta{restrain_spectrum(base, change, *options_.log_base) - change};
      });
      if (to_dense(correction).any().item<bool>()) corrections.emplace_back(entry.id, std::move(correction));
    }
    for (auto& [id, correction] : corrections) transaction.apply(id, std::move(correction));
  }

 private:
  /// Finds the directions of each weight that REVIVE keeps. They are found only once.
  void find_dominant(const EditContext& context, const WeightTransaction& transaction,
                     DominantOfWeight& dominant) const {
    for (const WeightId id : method().targets(context.config())) {
      if (dominant.contains(id)) continue;
      DominantSubspace found;
      const auto measure = [&] {
        const std::string where = weight_name(context.config(), id);
        found = dominant_subspace(context.to_solve_device(transaction.unedited(id), id.layer), *options_.energy, where);
        return found.left_OK;
      };
      const auto there = [&](const Tensor& tensor) { return context.to_solve_device(tensor, id.layer); };
      const Tensor left_OK = there(context.decide_by(measure));
      dominant[id] = {left_OK, there(context.decide_by([&] { return found.right_IK; }))};
    }
  }

  FilterOptions options_;
};

}  // namespace

std::unique_ptr<Editor> with_filters(std::unique_ptr<Editor> method, ConfigSection& editor) {
  FilterOptions options;
  if (editor.has(EditorSpec::kRect.key)) {
    ConfigSection rect = editor.section(EditorSpec::kRect.key);
    options.keep = read(rect, RectSpec::kKeep);
    rect.finish();
  }
  if (editor.has(EditorSpec::kRevive.key)) {
    ConfigSection revive = editor.section(EditorSpec::kRevive.key);
    options.energy = read(revive, ReviveSpec::kEnergy);
    revive.finish();
  }
  if (editor.has(EditorSpec::kPrune.key)) {
    ConfigSection prune = editor.section(EditorSpec::kPrune.key);
    options.log_base = read(prune, PruneSpec::kLogBase);
    prune.finish();
  }
  if (!options.keep && !options.energy && !options.log_base) return method;
  return std::make_unique<FilteredEditor>(std::move(method), options);
}

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
