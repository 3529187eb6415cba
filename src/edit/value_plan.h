// Which requests are optimised together.
#pragma once

#include <span>
#include <vector>

#include "lancet/edit/prepared_request.h"
#include "lancet/models/causal_lm.h"

namespace lancet {

/// Batches as indices, requests of similar suffix length together, so that little of a batch is padding. `batch`: how
/// many requests each holds; 0: as many as keep its step within value_step_tokens().
std::vector<std::vector<int64_t>> plan_value_batches(const CausalLM& model, std::span<const PreparedRequest> requests,
                                                     int64_t layer, int64_t batch);

}  // namespace lancet
