// Lists every weight of a model with its name, shape and place in the checkpoint. Loading, editing and export share
// this list.
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

/// The place of a weight in the checkpoint.
struct StoredPlace {
  /// One tensor; for experts possibly one tensor per expert, each with that expert's part of the weight.
  std::vector<std::string> tensors;
  std::vector<int64_t> shape;  ///< shape of each whole tensor
  Layout layout = Layout::kRows;
  int64_t groups = 1;  ///< the tensor's outputs are divided into so many groups of equal size
  int64_t begin = 0;   ///< the weight's first output in each group
};

struct WeightSpec {
  WeightId id;
  std::string name;  ///< the family's name: "model.layers.3.mlp.down_proj.weight"; for a part of a tensor with the part
                     ///< appended: "model.layers.3.mlp.gate_up_proj.weight[up]"; for experts:
                     ///< "model.layers.3.mlp.experts.*.down_proj.weight"
  std::vector<int64_t> shape;  ///< [out, in] for matrices
  StoredPlace stored;
  /// Number of experts, each with a part of the weight; the parts are concatenated along parts_axis().
  int64_t experts = 1;
  /// How the checkpoint packs each of the tensors (for experts in one tensor: each expert's matrix), if it has
  /// quantised them; else empty. For experts in one tensor, `stored` describes the tensor of a full-precision model.
  std::vector<PackedSpec> packed = {};

  int64_t size() const;  ///< number of elements
  /// Whether the experts are packed in one tensor, so that `packed` has a slice per expert.
  bool is_sliced() const { return !packed.empty() && !packed.front().slice.is_whole(); }
  bool is_whole() const;  ///< whether the weight shares its tensors with no other weight
  /// Returns the names of all tensors that the weight is read from.
  std::vector<std::string> tensor_names() const;
  /// Returns the weight's bytes in the file, whose type is `dtype` unless the weight is quantised.
  int64_t stored_bytes(DType dtype) const;
  /// Returns the dimension along which the experts' parts are concatenated.
  int64_t parts_axis() const { return role_of(id.kind).in == Axis::kFfn ? 1 : 0; }
};

/// Returns the weights that the configuration implies, in model order, stored under the family's own names. A tied head
/// is not listed, because it is the embedding.
std::vector<WeightSpec> weight_table(const ModelConfig& config);

/// Returns the weights of one layer.
std::vector<WeightSpec> layer_table(const ModelConfig& config, int64_t layer);

/// Returns that alternative set of the family's names under which the checkpoint has most of the table; empty: the
/// family's own names.
PrefixList names_used(const ModelConfig& config, std::span<const WeightSpec> table, const Checkpoint& checkpoint);

/// Returns whether the checkpoint has a tensor with the name of a compiled model ("_orig_mod.model.norm.weight"), as
/// torch.compile leaves them in a state_dict.
bool has_compiled_names(const Checkpoint& checkpoint);

/// Translates a family's name to one of its alternative sets of names.
std::string renamed(const std::string& name, std::span<const NamePrefix> prefixes);

/// Returns all weights, matched with the checkpoint. Throws: CheckpointError that lists every weight that is missing,
/// has another shape than config.json implies, or has a type that no weight can have, and every tensor that the family
/// does not know.
std::vector<WeightSpec> resolve_weights(const ModelConfig& config, const Checkpoint& checkpoint);

/// Returns the names under which the checkpoint stores the table that is both embedding and head: one name, or both.
/// Empty: they are not tied.
std::vector<std::string> tied_tensors(const ModelConfig& config, const Checkpoint& checkpoint);

/// Returns the spec of a weight. Throws: std::logic_error if the model does not have it.
WeightSpec weight_spec(const ModelConfig& config, WeightId id);

/// Returns the name of one weight: "model.layers.3.mlp.down_proj.weight".
std::string weight_name(const ModelConfig& config, WeightId id);

/// Whether the model, or any of its layers, has such a weight.
bool has_weight(const ModelConfig& config, WeightKind kind);

/// Whether the keys of a layer's down projection depend on this weight. In a parallel block they do not depend on the
/// same layer's attention, but they depend on the norm that attention shares with the MLP.
bool shapes_keys(const ModelConfig& config, WeightId id, int64_t layer);

/// Returns the number of elements of all weights.
int64_t count_parameters(const ModelConfig& config);

}  // namespace lancet
