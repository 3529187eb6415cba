// One prompt continued by several weights of one model at once: a token by each in turn.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lancet/models/generate.h"

namespace lancet {

/// Returns the new ids by each of `n_weights` weights, as generate() gives them of the row alone. `put` puts the i-th
/// weights in the model; what it leaves there at the end is the caller's. options.on_token is told of i as the row.
/// Throws: as generate(), and what `put` throws.
std::vector<std::vector<TokenId>> generate_in_turns(const CausalLM& model, const GenerateRow& row, int64_t n_weights,
                                                    const std::function<void(int64_t i)>& put,
                                                    const GenerateOptions& options);

}  // namespace lancet
