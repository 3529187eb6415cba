// Asks the model for edits that stood before others were made. Defined in edit_stream.cpp.
#pragma once

#include <vector>

#include "lancet/models/model_files.h"
#include "lancet/outcome/batch_report.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

/// Collective. By the protocols of `options` that need no comparison with the unedited model: all but `easyedit` and
/// `subject`; without `side_effects`. Throws: as EvaluationPlan.
StandingMeasure measure_standing(const CausalLM& model, const ModelFiles& files, std::vector<EditRequest> requests,
                                 EvaluationOptions options, Communicator& communicator);

}  // namespace lancet
