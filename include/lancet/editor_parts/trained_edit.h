// The parts that methods which train weights share: the options of a training, and applying its changes.
#pragma once

#include <span>

#include "lancet/editing/editor.h"
#include "lancet/spec/option.h"

namespace lancet {

/// Reads the passes, the learning rate, the weight decay and the loss at which training stops, and, by `batch`, the
/// number of requests per update.
TrainingOptions read_training(ConfigSection& editor, TrainingObjective objective, const IntegerOption& batch);

/// Returns M = (C / mean + added I)^(-1/2), where mean is the mean of C's eigenvalues. M is scaled so that the root
/// mean square of its eigenvalues is 1. For experts it has one block for each of C's. f64, on C's device. Only within a
/// projection of TrainingOptions.
Tensor whitening(const EditContext& context, int64_t layer, double added);

/// Collective. Trains on the texts and, with `training.revisit`, on those of earlier batches, which the state keeps.
TrainedWeights train_in_stream(const EditContext& context, std::span<const TokenizedRequest> texts,
                               std::span<const WeightId> weights, TrainingOptions training, EditorState& state);

/// Collective. Applies the trained changes of these weights, in their order.
void apply_changes(const EditContext& context, std::span<const WeightId> weights, const TrainedWeights& trained,
                   WeightTransaction& transaction);

/// Collective. Does the same and counts the requests as edited.
EditOutcome apply_trained(const EditContext& context, std::span<const WeightId> weights, const TrainedWeights& trained,
                          EditorState& state, WeightTransaction& transaction);

}  // namespace lancet
