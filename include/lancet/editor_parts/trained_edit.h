// What methods that train weights share: the options of a training, and what becomes of its changes.
#pragma once

#include <span>

#include "lancet/editing/editor.h"
#include "lancet/spec/option.h"

namespace lancet {

/// Reads the passes, the learning rate, the weight decay, the loss to stop at, and by `batch` the requests of an
/// update.
TrainingOptions read_training(ConfigSection& editor, TrainingObjective objective, const IntegerOption& batch);

/// M = (C / mean + added I)^(-1/2), mean being that of C's diagonal, brought to a root mean square of its eigenvalues
/// of 1; of experts' its blocks by C's; f64, on its device. Within a projection of TrainingOptions alone.
Tensor whitening(const EditContext& context, int64_t layer, double added);

/// Collective. Trains on the texts and, with `training.revisit`, on those of earlier batches, which the state keeps.
TrainedWeights train_in_stream(const EditContext& context, std::span<const TokenizedRequest> texts,
                               std::span<const WeightId> weights, TrainingOptions training, EditorState& state);

/// Collective. Applies the changes of these weights, in their order.
void apply_changes(const EditContext& context, std::span<const WeightId> weights, const TrainedWeights& trained,
                   WeightTransaction& transaction);

/// Collective. The same, and counts the requests as edited.
EditOutcome apply_trained(const EditContext& context, std::span<const WeightId> weights, const TrainedWeights& trained,
                          EditorState& state, WeightTransaction& transaction);

}  // namespace lancet
