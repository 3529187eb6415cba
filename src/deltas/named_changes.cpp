#include "lancet/deltas/named_changes.h"

#include <torch/types.h>

#include <map>

#include "delta_shape.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {

NamedTensors to_named(const std::vector<WeightChanges>& changes, const ModelConfig& config) {
  NamedTensors named;
  for (const WeightChanges& weight : changes) {
    for (size_t i = 0; i < weight.deltas.size(); ++i) {
      const std::string name = cat(weight_name(config, weight.id), "/", i, "/");
      if (const auto* low_rank = std::get_if<LowRankDelta>(&weight.deltas[i])) {
        named.emplace_back(name + "left", low_rank->left_OR);
        named.emplace_back(name + "right", low_rank->right_RI);
      } else {
        named.emplace_back(name + "full", std::get<DenseDelta>(weight.deltas[i]).full_OI);
      }
    }
  }
  return named;
}

/// The inverse of to_named. Throws: CheckpointError for what it cannot have made.
std::vector<WeightChanges> to_changes(const NamedTensors& named, const ModelConfig& config) {
  std::map<std::string, WeightSpec> specs;
  for (const WeightSpec& spec : weight_table(config)) specs[spec.name] = spec;
  std::vector<WeightChanges> changes;
  const auto refuse = [](const std::string& name) {
    throw CheckpointError(
        cat(name, ": expected a change of one of the model's weights, of its shape, complete and in its order"));
  };
  for (size_t i = 0; i < named.size(); ++i) {
    const auto& [name, tensor] = named[i];
    const std::vector<std::string> parts = split(name, '/');
    if (parts.size() != 3 || !specs.contains(parts[0])) refuse(name);
    const WeightSpec& spec = specs.at(parts[0]);
    if (changes.empty() || changes.back().id != spec.id) changes.push_back({spec.id, {}});
    std::vector<WeightDelta>& deltas = changes.back().deltas;
    if (parts[1] != std::to_string(deltas.size())) refuse(name);
    if (parts[2] == "full") {
      deltas.emplace_back(DenseDelta{tensor});
    } else if (parts[2] == "left" && i + 1 < named.size() &&
               named[i + 1].first == cat(parts[0], "/", parts[1], "/right")) {
      deltas.emplace_back(LowRankDelta{tensor, named[++i].second});
    } else {
      refuse(name);
    }
    if (!fits_weight(deltas.back(), spec.shape)) refuse(name);
  }
  return changes;
}

}  // namespace lancet
