// Measures edits that were in force before others were made. Defined in edit_stream.cpp.
#pragma once

#include <vector>

#include "lancet/models/model_files.h"
#include "lancet/outcome/batch_report.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

/// Collective. Evaluates the requests with those protocols of `options` that need no comparison with the unedited
/// model: all except `easyedit` and `subject`, and without `side_effects`. Throws: as EvaluationPlan.
StandingMeasure measure_standing(const CausalLM& model, const ModelFiles& files, std::vector<EditRequest> requests,
                                 EvaluationOptions options, Communicator& communicator);

}  // namespace lancet
