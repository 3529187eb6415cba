// Fine-tuning of a few projections: the baselines FT, FT-L and FT-M. Source: ROME (Meng et al., arXiv 2202.05262,
// appendix E) and EasyEdit's ft. FT and FT-L lower -log p of every target token at the prompt's last token; FT-L limits
// every entry's change; FT-M is teacher-forced on the target. Differs from the reference: targets are tokenised as they
// continue the prompt, without BOS or padding among the labels. FT-M with `order: breadth-first` and `target_end: eos`
// is LocFT-BF (Yang et al., arXiv 2509.22072, ICT-STAR/LocFT): each pass has the requests in other batches. Differs
// from it: the order is drawn from a stated seed. `revisit` is ours: passes have requests of a stream's earlier
// batches too.
#include "lancet/editing/editor.h"
#include "lancet/editor_parts/kept_texts.h"
#include "lancet/editor_parts/modules.h"
#include "lancet/editor_parts/trained_edit.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

class FineTuneEditor final : public Editor {
 public:
  FineTuneEditor(std::optional<std::vector<WeightId>> modules, TrainingOptions options, TargetEnd end)
      : modules_(std::move(modules)), options_(options), end_(end) {}

  EditorNeeds needs() const override {
    return {.subject = false, .statistics = false, .backward = BackwardNeeds{.batch = options_.batch}};
  }
  const ContextOptions* contexts() const override { return nullptr; }
  const ValueOptions* values() const override { return nullptr; }
  TargetRule target_rule() const override { return {.end = end_}; }
  std::vector<WeightId> targets(const ModelConfig& config) const override {
    return modules_of(modules_, AutomaticModules::kOneDown, config);
  }

  EditOutcome edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                   WeightTransaction& transaction) const override {
    const std::vector<WeightId> modules = targets(context.config());
    const std::vector<TokenizedRequest> texts = context.tokenize(requests, target_rule());
    TrainingOptions training = options_;
    if (training.revisit > 0) training.earlier = kept_texts(state, texts);
    const TrainedWeights trained = context.train_weights(texts, modules, training);
    if (training.revisit > 0) keep_texts(state, texts);
    return apply_trained(context, modules, trained, state, transaction);
  }

 private:
  std::optional<std::vector<WeightId>> modules_;
  TrainingOptions options_;
  TargetEnd end_;
};

std::unique_ptr<Editor> make_ft_editor(ConfigSection& editor, const TrainingOptions& options) {
  return std::make_unique<FineTuneEditor>(parse_modules(editor), options, parse_target_end(editor));
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
  return make_ft_editor(editor, options);
}

}  // namespace lancet
