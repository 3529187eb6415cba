// What to say of numbers that are not finite: a model whose own weights are not is no reason to lower a rate.
#pragma once

#include <string>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/models/causal_lm.h"

namespace lancet {

/// Names of the weights that have NaN or infinity. Reads all of them: for messages.
std::vector<std::string> damaged_weights(const CausalLM& model);

/// "`what`: the model's weight NAME has ..." where weights are the cause; otherwise "`what`. `remedy`".
NumericError not_finite(const CausalLM& model, const std::string& what, const std::string& remedy);

/// What to do where the run's dtype may be too narrow for a model that is whole.
std::string wider_dtype(const CausalLM& model);

}  // namespace lancet
