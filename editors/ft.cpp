// Fine-tuning of a few projections: the baselines FT, FT-L and FT-M. Source: ROME (Meng et al., arXiv 2202.05262,
// appendix E) and EasyEdit's ft. FT and FT-L lower -log p of every target token at the prompt's last token; FT-L limits
// the change of every entry; FT-M is teacher-forced on the target. Differs from the reference: targets are tokenised as
// they continue the prompt, without BOS or padding among the labels. FT-M with `order: breadth-first` and `target_end:
// eos` is LocFT-BF (Yang et al., arXiv 2509.22072, ICT-STAR/LocFT): each pass has the requests in other batches.
// Differs from it: the order is drawn from a stated seed. `revisit`, `margin` and `whiten` are our own. With `revisit`,
// a pass also has requests of the stream's earlier batches. With `whiten`, Adam optimises A in the change A M, where M
// = (C / mean + whiten I)^(-1/2), mean is the mean of C's diagonal, and M is scaled so that the root mean square of its
// eigenvalues is 1.
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/editing/editor.h"
#include "lancet/editor_parts/automatic_options.h"
#include "lancet/editor_parts/trained_edit.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

class FineTuneEditor final : public Editor {
 public:
  FineTuneEditor(std::optional<std::vector<WeightId>> modules, TrainingOptions options, std::optional<double> whiten,
                 TargetEnd end)
      : modules_(std::move(modules)), options_(std::move(options)), whiten_(whiten), end_(end) {}

  EditorNeeds needs() const override {
    return {.subject = false,
            .statistics = whiten_.has_value(),
            .backward = BackwardNeeds{.batch = options_.batch, .projects = whiten_.has_value()}};
  }
  const ContextOptions* contexts() const override { return nullptr; }
  const ValueOptions* values() const override { return nullptr; }
  TargetRule target_rule() const override { return {.end = end_}; }
  std::vector<WeightId> targets(const ModelConfig& config) const override {
    std::vector<WeightId> modules = modules_of(modules_, AutomaticModules::kOneDown, config);
    for (const WeightId& id : modules)
      if (whiten_ && id.kind != WeightKind::kDown)
        throw ConfigError(cat("editor.whiten: layer ", id.layer,
                              " has no statistics of what the projection reads: expected down projections in "
                              "editor.modules, or no `whiten`"));
    return modules;
  }

  EditOutcome edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                   WeightTransaction& transaction) const override {
    const std::vector<WeightId> modules = targets(context.config());
    const std::vector<TokenizedRequest> texts = context.tokenize(requests, target_rule());
    TrainingOptions training = options_;
    if (whiten_) {
      training.projected = Projected::kSteps;
      training.projection = [&](WeightId id) {
        return GradientProjection{.scale_II = whitening(context, id.layer, *whiten_)};
      };
    }
    const TrainedWeights trained = train_in_stream(context, texts, modules, training, state);
    return apply_trained(context, modules, trained, state, transaction);
  }

 private:
  std::optional<std::vector<WeightId>> modules_;
  TrainingOptions options_;
  std::optional<double> whiten_;
  TargetEnd end_;
};

std::unique_ptr<Editor> make_ft_editor(ConfigSection& editor, const TrainingOptions& options,
                                       std::optional<double> whiten = {}) {
  return std::make_unique<FineTuneEditor>(parse_modules(editor), options, whiten, parse_target_end(editor));
}

}  // namespace

std::unique_ptr<Editor> make_ft(ConfigSection& editor) {
  return make_ft_editor(editor, read_training(editor, TrainingObjective::kPromptLast, GradientSpec::kBatch));
}

std::unique_ptr<Editor> make_ft_l(ConfigSection& editor) {
  TrainingOptions options = read_training(editor, TrainingObjective::kPromptLast, GradientSpec::kBatch);
  options.norm_constraint = read(editor, GradientSpec::kNormConstraint);
  return make_ft_editor(editor, options);
}

std::unique_ptr<Editor> make_ft_m(ConfigSection& editor) {
  TrainingOptions options = read_training(editor, TrainingObjective::kTarget, GradientSpec::kBatch);
  options.norm_constraint = read_given(editor, GradientSpec::kOwnNormConstraint);
  options.order = read<TrainingOrder>(editor, GradientSpec::kOrder);
  options.revisit = read(editor, GradientSpec::kRevisit);
  options.margin = read_given(editor, GradientSpec::kMargin);
  return make_ft_editor(editor, options, read_given(editor, GradientSpec::kWhiten));
}

}  // namespace lancet
