// A weight as the checkpoint stores it.
#pragma once

#include "lancet/plan/model_session.h"

namespace lancet {

/// `model`: loaded from `files` and unedited. Its own tensor where it has the stored type, and so the stored bits; else
/// read again, into memory of its own. `id`: of a weight that the model has. Throws: CheckpointError.
Tensor stored_weight(const ModelFiles& files, const CausalLM& model, WeightId id);

}  // namespace lancet
