// Every weight of a model by name, shape and place in the checkpoint: one enumeration that loading, editing and export
// share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/io/checkpoint.h"
#include "lancet/models/model_config.h"

namespace lancet {

struct WeightId {
  WeightKind kind = WeightKind::kEmbedding;
  int64_t layer = 0;  ///< 0 for weights outside the layers
  auto operator<=>(const WeightId&) const = default;
};

struct WeightSpec {
  WeightId id;
  std::string name;            ///< as the family names it: "model.layers.3.mlp.down_proj.weight"
  std::vector<int64_t> shape;  ///< [out, in] for matrices
  std::string
      stored_name;  ///< in the checkpoint: differs from `name` where tied weights are stored under the other's name
};

/// The weights that the configuration implies, in model order, `stored_name` = `name`. A tied head is not listed: it is
/// the embedding.
std::vector<WeightSpec> weight_table(const ModelConfig& config);

/// The same, matched with the checkpoint.
/// Throws: CheckpointError listing every weight that is missing, has another shape than config.json implies or a type
/// that is no weight's, and every tensor that the family does not know.
std::vector<WeightSpec> resolve_weights(const ModelConfig& config, const Checkpoint& checkpoint);

/// Name of one weight: "model.layers.3.mlp.down_proj.weight".
std::string weight_name(const ModelConfig& config, WeightId id);

}  // namespace lancet
