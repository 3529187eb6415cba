// Small random models whose layers' matrices lie quantised in the checkpoint, as GPTQ writes them.
#pragma once

#include <string>

#include "tiny_model.h"

namespace lancet::testing {

/// Writes a model like write_random_model(), but every matrix of a layer, routers aside, of 4 bits: groups of 8 columns
/// in an order of their own, zero points of each. Matrices need multiples of 8 rows and columns.
void write_gptq_model(const std::filesystem::path& folder, const std::string& config_text, uint64_t seed);

/// Such a model in its own temporary folder.
TinyModel gptq_model(const std::string& config_text, uint64_t seed);
TinyModel gptq_model(const TinyShape& shape = {});

/// All matrices that a QuantiseRule can cover.
std::vector<WeightId> layer_matrices(const ModelConfig& config);

}  // namespace lancet::testing
