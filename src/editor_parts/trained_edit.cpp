#include "lancet/editor_parts/trained_edit.h"

#include <torch/types.h>

#include "lancet/core/strings.h"
#include "lancet/editor_parts/kept_texts.h"
#include "lancet/spec/gradient_spec.h"
#include "lancet/spec/read_option.h"

namespace lancet {

TrainingOptions read_training(ConfigSection& editor, TrainingObjective objective, const IntegerOption& batch) {
  TrainingOptions options{.objective = objective};
  options.steps = read(editor, GradientSpec::kSteps);
  options.lr = read(editor, GradientSpec::kLr);
  options.weight_decay = read(editor, GradientSpec::kWeightDecay);
  options.batch = read(editor, batch);
  options.stop_loss = read(editor, GradientSpec::kStopLoss);
  return options;
}

Tensor whitening(const EditContext& context, int64_t layer, double added) {
  const torch::NoGradGuard no_grad;
  const Tensor lower_FF = context.covariance_factor(layer);
  const MomentSpectrum spectrum = make_spectrum(lower_FF.matmul(lower_FF.mT()), 0, cat("layer ", layer));
  Tensor scale_F = (spectrum.values_N / spectrum.values_N.mean() + added).rsqrt();
  scale_F = scale_F / scale_F.square().mean().sqrt();
  return (spectrum.vectors_NN * scale_F.unsqueeze(-2)).matmul(spectrum.vectors_NN.mT());
}

TrainedWeights train_in_stream(const EditContext& context, std::span<const TokenizedRequest> texts,
                               std::span<const WeightId> weights, TrainingOptions training, EditorState& state) {
  if (training.revisit > 0) training.earlier = kept_texts(state, texts);
  TrainedWeights trained = context.train_weights(texts, weights, training);
  if (training.revisit > 0) keep_texts(state, texts);
  return trained;
}

void apply_changes(const EditContext& context, std::span<const WeightId> weights, const TrainedWeights& trained,
                   WeightTransaction& transaction) {
  for (size_t i = 0; i < weights.size(); ++i)
    transaction.apply(weights[i], context.solve(weights[i].layer, [&] { return DenseDelta{trained.deltas_OI[i]}; }));
}

EditOutcome apply_trained(const EditContext& context, std::span<const WeightId> weights, const TrainedWeights& trained,
                          EditorState& state, WeightTransaction& transaction) {
  apply_changes(context, weights, trained, transaction);
  EditOutcome outcome;
  for (size_t i = 0; i < trained.initial_losses.size(); ++i)
    outcome.requests.push_back(
        {.steps = trained.steps, .initial_loss = trained.initial_losses[i], .final_loss = trained.final_losses[i]});
  state.edits += std::ssize(outcome.requests);
  return outcome;
}

}  // namespace lancet
