// Every weight of a model by name, shape and place in the checkpoint: one enumeration that loading, editing and export
// share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/models/model_config.h"
#include "lancet/quant_formats/packed_spec.h"

namespace lancet {

struct WeightId {
  WeightKind kind = WeightKind::kEmbedding;
  int64_t layer = 0;  ///< 0 for weights outside the layers
  auto operator<=>(const WeightId&) const = default;
};

/// Place of a weight in the checkpoint.
struct StoredPlace {
  std::vector<std::string> tensors;  ///< one; of experts perhaps one for each, with the expert's part of the weight
  std::vector<int64_t> shape;        ///< shape of each whole tensor
  Layout layout = Layout::kRows;
  int64_t groups = 1;  ///< the tensor's outputs are so many groups of equal size
  int64_t begin = 0;   ///< the weight's first output in each group
};

struct WeightSpec {
  WeightId id;
  std::string name;  ///< the family's name: "model.layers.3.mlp.down_proj.weight"; a part of a tensor has the part
                     ///< after it: "model.layers.3.mlp.gate_up_proj.weight[up]"; of experts:
                     ///< "model.layers.3.mlp.experts.*.down_proj.weight"
  std::vector<int64_t> shape;  ///< [out, in] for matrices
  StoredPlace stored;
  int64_t experts = 1;  ///< which each have a part of the weight, one after the other along parts_axis()
  /// How each of the tensors is packed, or of experts in one tensor each one's matrix, where the checkpoint has them
  /// quantised; else empty. Of the latter `stored` is the tensor that a model in full precision has.
  std::vector<PackedSpec> packed = {};

  int64_t size() const;  ///< numbers
  /// Whether experts are packed in one tensor: `packed` has each one's slice.
  bool is_sliced() const { return !packed.empty() && !packed.front().slice.is_whole(); }
  bool is_whole() const;  ///< the only weight of its tensors
  /// Names of all tensors that the weight is read from.
  std::vector<std::string> tensor_names() const;
  /// Bytes that it takes in the file, whose type is `dtype` where it is not quantised.
  int64_t stored_bytes(DType dtype) const;
  /// The dimension along which experts' parts lie one after the other.
  int64_t parts_axis() const { return role_of(id.kind).in == Axis::kFfn ? 1 : 0; }
};

/// The weights that the configuration implies, in model order, stored under the family's own names. A tied head is not
/// listed: it is the embedding.
std::vector<WeightSpec> weight_table(const ModelConfig& config);

/// Returns the weights of one layer.
std::vector<WeightSpec> layer_table(const ModelConfig& config, int64_t layer);

/// The set of the family's other names that the checkpoint has most of the table under; empty: the family's own.
PrefixList names_used(const ModelConfig& config, std::span<const WeightSpec> table, const Checkpoint& checkpoint);

/// A family's name as one of its sets of other names has it.
std::string renamed(const std::string& name, std::span<const NamePrefix> prefixes);

/// All, matched with the checkpoint.
/// Throws: CheckpointError listing every weight that is missing, has another shape than config.json implies or a type
/// that is no weight's, and every tensor that the family does not know.
std::vector<WeightSpec> resolve_weights(const ModelConfig& config, const Checkpoint& checkpoint);

/// Names under which the checkpoint has the table that is embedding and head: one, or both. Empty: they are not tied.
std::vector<std::string> tied_tensors(const ModelConfig& config, const Checkpoint& checkpoint);

/// Returns the spec of a weight that the model has. Throws: std::logic_error.
WeightSpec weight_spec(const ModelConfig& config, WeightId id);

/// Name of one weight: "model.layers.3.mlp.down_proj.weight".
std::string weight_name(const ModelConfig& config, WeightId id);

/// Whether the model, or any of its layers, has such a weight.
bool has_weight(const ModelConfig& config, WeightKind kind);

/// Whether the keys of a layer's down projection depend on this weight. In a parallel block they do not depend on the
/// same layer's attention, but on the norm that it shares with the MLP.
bool shapes_keys(const ModelConfig& config, WeightId id, int64_t layer);

/// Numbers of all weights.
int64_t count_parameters(const ModelConfig& config);

}  // namespace lancet
