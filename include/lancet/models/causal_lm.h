// A decoder-only language model whose layers may be on several devices. It does not know about editing.
// Legend of shape suffixes: B batch, T tokens, D model, F ffn, H heads, K kv-heads, C head dim, V vocab, P prefix, N
// rows.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/models/hooks.h"
#include "lancet/models/layer_range.h"
#include "lancet/models/model_weights.h"
#include "lancet/models/sequence_info.h"
#include "lancet/runtime/devices.h"

namespace lancet {

struct PassConstants;
struct PassElsewhere;

class CausalLM;
class LayersElsewhere;

/// Returns the type of weights and activations and, if some weights are quantised, their format: "BF16, quantised
/// weights nf4".
std::string precision_text(const CausalLM& model);

class CausalLM {
 public:
  /// Loads a model. Each tensor is copied from its file directly to its device, in the placement's weight dtype or
  /// quantised as `rule` says; the model shares no memory with the files. Throws: CheckpointError when the checkpoint
  /// does not fit the configuration, or holds a weight that cannot be packed; NumericError for numbers that are not
  /// finite and would be quantised, or that the type cannot hold; ConfigError when `rule` has a quantiser but leaves it
  /// no matrix.
  static CausalLM load(const Checkpoint& checkpoint, const ModelConfig& config, const Placement& placement,
                       const QuantiseRule& rule = {});

  /// Loads, as load() does, the part that the placement has on this rank. `elsewhere` gives access to the other layers;
  /// null: nobody asks for them.
  static CausalLM load_part(const Checkpoint& checkpoint, const ModelConfig& config, const Placement& placement,
                            const QuantiseRule& rule, std::shared_ptr<LayersElsewhere> elsewhere);

  /// Makes a model of weights that are already in memory: those of the table, each on its device, in the placement's
  /// weight dtype and the table's shape. Throws: PlacementError / std::logic_error for a weight that is missing,
  /// unknown, or of another shape, type or device.
  static CausalLM from_weights(const ModelConfig& config, const Placement& placement,
                               std::map<WeightId, Tensor> weights);

  const ModelConfig& config() const { return config_; }
  const Placement& placement() const { return placement_; }
  /// The rule by which the model was loaded.
  const QuantiseRule& quantise_rule() const { return rule_; }
  LayerRange all_layers() const { return {0, config_.n_layers}; }

  /// Looks up the embeddings of the tokens alone: ids [B, T] int64 on the host -> [B, T, D] on the embedding's device.
  Tensor embed_tokens(const Tensor& ids_BT) const;

  /// Embeds the tokens and adds what the model adds for their positions: the hidden states that the first layer reads.
  /// Throws: ConfigError for positions that the model has not learned.
  Tensor embed(const Tensor& ids_BT, const SequenceInfo& sequence) const;

  /// Runs the layers of `range`: h [B, T, D] on the device of layer range.begin (or of the layer before it) -> output
  /// of layer range.end - 1 on that layer's device; [B, O, D] if the sequence names its outputs; undefined if the hooks
  /// stopped the pass. Crossing from one stage to the next is differentiable. The hidden state is copied once per
  /// crossing. The host's data on the sequence (positions, and the mask if there is one) is copied once per stage.
  /// Throws: PlacementError for hidden states or a prefix on another device.
  Tensor run_layers(Tensor h_BTD, const SequenceInfo& sequence, LayerRange range, const HookSet& hooks = {}) const;

  /// Prepares what run_layers() needs of a sequence, on each stage's device. Passes that run again and again then copy
  /// nothing from the host. `sequence.prefix` may move in memory but must not change.
  std::shared_ptr<const PassInputs> prepare_pass(const SequenceInfo& sequence, LayerRange range) const;

  /// Applies the final norm and the head: h [N, D] -> logits [N, V] on the head's device, in the weight dtype.
  Tensor logits(const Tensor& h_ND) const;

  /// Returns a weight in full precision, on its layer's device. For a weight on another rank it returns a copy, which
  /// put_weight() keeps up to date. Throws: std::logic_error when the model has no such weight, or has it quantised.
  const Tensor& weight(WeightId id) const;
  /// Whether all numbers of the weight are finite, for a weight that weight() can return.
  bool is_finite(WeightId id) const;
  bool is_quantised(WeightId id) const;
  /// The formats of the quantised weights, by name: "nf4", "gptq"; empty: no weight is quantised.
  const std::set<std::string>& quantised_formats() const { return weights_.formats; }
  /// Replaces the weight by the tensor without a copy; the tensor may be an autograd leaf. Throws: PlacementError /
  /// std::logic_error for another device, dtype or shape.
  void set_weight(WeightId id, Tensor value);
  /// Gives the weight these numbers, of the same type and shape, from any device. If `value` is on the weight's device,
  /// it replaces the weight as set_weight() does; otherwise it is copied into the weight's own memory. Throws: as
  /// set_weight().
  void put_weight(WeightId id, Tensor value);

 private:
  CausalLM(ModelConfig config, Placement placement);
  /// Throws: as from_weights().
  static CausalLM of(const ModelConfig& config, const Placement& placement, ModelWeights weights, QuantiseRule rule);
  void check_replacement(WeightId id, const Tensor& value) const;

  /// Returns a vector weight; undefined if the model does not have it.
  Tensor optional_weight(WeightId id) const;

  Tensor run_elsewhere(const Tensor& h_BTD, const SequenceInfo& sequence, const PassElsewhere& pass,
                       const HookSet& hooks) const;

  /// Adds to `pass` what one layer of a pass over `range` needs of the sequence.
  void add_inputs(const SequenceInfo& sequence, LayerRange range, int64_t layer, PassInputs& pass) const;

  ModelConfig config_;
  Placement placement_;
  QuantiseRule rule_;
  ModelWeights weights_;
  std::shared_ptr<const PassConstants> constants_;
  std::shared_ptr<LayersElsewhere> elsewhere_;  ///< null: all layers are here
};

}  // namespace lancet
