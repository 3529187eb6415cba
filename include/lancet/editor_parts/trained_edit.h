// What methods that train weights share: the options of a training, and what becomes of its changes.
#pragma once

#include <span>

#include "lancet/editing/editor.h"
#include "lancet/spec/option.h"

namespace lancet {

/// Reads the passes, the learning rate, the weight decay, the loss to stop at, and by `batch` the requests of an
/// update.
TrainingOptions read_training(ConfigSection& editor, TrainingObjective objective, const IntegerOption& batch);

/// Collective. Applies the changes of these weights, in their order, and counts the requests as edited.
EditOutcome apply_trained(const EditContext& context, std::span<const WeightId> weights, const TrainedWeights& trained,
                          EditorState& state, WeightTransaction& transaction);

}  // namespace lancet
