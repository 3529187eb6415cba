// Error messages for numbers that are not finite. If the model's own weights are not finite, lowering a learning rate
// cannot help, so the message says that instead.
#pragma once

#include <string>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/models/causal_lm.h"

namespace lancet {

/// Returns the names of the weights that contain NaN or infinity. It reads all weights, so use it only for messages.
std::vector<std::string> damaged_weights(const CausalLM& model);

/// Returns the error "`what`: the model's weight NAME has ..." if weights are the cause, otherwise "`what`. `remedy`".
NumericError not_finite(const CausalLM& model, const std::string& what, const std::string& remedy);

/// Returns advice for a run whose dtype may be too narrow, for a model whose weights are all finite.
std::string wider_dtype(const CausalLM& model);

}  // namespace lancet
