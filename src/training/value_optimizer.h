// The optimisation of one batch of requests: losses (value_batch.h), gradients, Adam, stopping.
#pragma once

#include <functional>
#include <vector>

#include "lancet/training/values.h"

namespace lancet {

/// Results in the batch's order. `note_step(n)`: a step more is done, and with it n requests.
/// Throws: NumericError when a loss is not finite.
OptimizedValues optimize_batch(const CausalLM& model, const std::vector<const PreparedRequest*>& requests,
                               int64_t layer, const ValueOptions& options, LaunchMode launch,
                               const std::function<void(int64_t)>& note_step);

}  // namespace lancet
