// A weight as the checkpoint stores it.
#pragma once

#include "lancet/job/model_session.h"

namespace lancet {

/// In the mapped file's memory: read only. `id`: of a weight that the model has.
Tensor stored_weight(const ModelFiles& files, WeightId id);

}  // namespace lancet
