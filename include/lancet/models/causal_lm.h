// A decoder-only language model whose layers may lie on several devices. Knows nothing of editing.
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

/// The type of weights and activations, with how quantised weights are kept, where there are any: "BF16, quantised
/// weights nf4".
std::string precision_text(const CausalLM& model);

class CausalLM {
 public:
  /// Each tensor goes from its file straight to its device, in the placement's weight dtype or as `rule` quantises it;
  /// the model shares no memory with the files. Throws: CheckpointError when the checkpoint does not fit the
  /// configuration, or holds what cannot be packed; NumericError for numbers that are not finite, where they would be
  /// quantised, or that the type cannot hold; ConfigError where `rule` has a quantiser and leaves it no matrix.
  static CausalLM load(const Checkpoint& checkpoint, const ModelConfig& config, const Placement& placement,
                       const QuantiseRule& rule = {});

  /// Loads likewise what the placement has here; `elsewhere` has the rest. Null: nobody asks for it.
  static CausalLM load_part(const Checkpoint& checkpoint, const ModelConfig& config, const Placement& placement,
                            const QuantiseRule& rule, std::shared_ptr<LayersElsewhere> elsewhere);

  /// Makes a model of weights made elsewhere: the table's, each on its device, in the placement's weight dtype and the
  /// table's shape. Throws: PlacementError / std::logic_error for a weight that is missing, too many, or another.
  static CausalLM from_weights(const ModelConfig& config, const Placement& placement,
                               std::map<WeightId, Tensor> weights);

  const ModelConfig& config() const { return config_; }
  const Placement& placement() const { return placement_; }
  /// The rule that the model was loaded by.
  const QuantiseRule& quantise_rule() const { return rule_; }
  LayerRange all_layers() const { return {0, config_.n_layers}; }

  /// ids [B, T] int64 on the host -> embeddings [B, T, D] of the tokens alone, on the embedding's device.
  Tensor embed_tokens(const Tensor& ids_BT) const;

  /// Embeds the tokens, with what the model adds for their positions: the hidden states that the first layer reads.
  /// Throws: ConfigError for positions that the model has not learned.
  Tensor embed(const Tensor& ids_BT, const SequenceInfo& sequence) const;

  /// h [B, T, D] on the device of layer range.begin (or of the one before) -> output of layer range.end - 1, on that
  /// layer's device ([B, O, D] where the sequence names its outputs); undefined when the hooks stopped the pass. The
  /// crossing between stages is differentiable. Between devices go the hidden state, once per crossing, and what the
  /// host knows of the sequence (positions, and the mask where there is one), once per stage.
  /// Throws: PlacementError for hidden states or a prefix on another device.
  Tensor run_layers(Tensor h_BTD, const SequenceInfo& sequence, LayerRange range, const HookSet& hooks = {}) const;

  /// What run_layers() needs of a sequence, on each stage's device: for passes that are run again and again, which then
  /// bring nothing from the host. `sequence.prefix` may move, and must not change.
  std::shared_ptr<const PassInputs> prepare_pass(const SequenceInfo& sequence, LayerRange range) const;

  /// Final norm and head: h [N, D] -> logits [N, V] on the head's device, in the weight dtype.
  Tensor logits(const Tensor& h_ND) const;

  /// A weight in full precision, on its layer's device; another rank's is a copy, which follows put_weight(). Throws:
  /// std::logic_error when the model has no such weight, or has it quantised.
  const Tensor& weight(WeightId id) const;
  /// Whether all its numbers are finite; of a weight that weight() gives.
  bool is_finite(WeightId id) const;
  bool is_quantised(WeightId id) const;
  /// How they are kept, by name: "nf4", "gptq"; empty: none is quantised.
  const std::set<std::string>& quantised_formats() const { return weights_.formats; }
  /// The tensor takes the place of the weight (no copy); it may be an autograd leaf.
  /// Throws: PlacementError / std::logic_error on another device, dtype or shape.
  void set_weight(WeightId id, Tensor value);
  /// Gives the weight these numbers, of its type and shape, from any device: as set_weight() does where they lie on the
  /// weight's, else in its own memory. Throws: as set_weight().
  void put_weight(WeightId id, Tensor value);

 private:
  CausalLM(ModelConfig config, Placement placement);
  /// Throws: as from_weights().
  static CausalLM of(const ModelConfig& config, const Placement& placement, ModelWeights weights, QuantiseRule rule);
  void check_replacement(WeightId id, const Tensor& value) const;

  /// A vector's weight; undefined where the model has none.
  Tensor optional_weight(WeightId id) const;

  Tensor run_elsewhere(const Tensor& h_BTD, const SequenceInfo& sequence, const PassElsewhere& pass,
                       const HookSet& hooks) const;

  /// Adds what a layer of a pass over `range` needs of the sequence.
  void add_inputs(const SequenceInfo& sequence, LayerRange range, int64_t layer, PassInputs& pass) const;

  ModelConfig config_;
  Placement placement_;
  QuantiseRule rule_;
  ModelWeights weights_;
  std::shared_ptr<const PassConstants> constants_;
  std::shared_ptr<LayersElsewhere> elsewhere_;  ///< null: all layers are here
};

}  // namespace lancet
