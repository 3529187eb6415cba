// The content of config.json as plain fields. Code branches on these fields, never on names of families.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/core/dtype.h"
#include "lancet/models/experts_config.h"
#include "lancet/models/families.h"
#include "lancet/models/latent_config.h"
#include "lancet/models/recurrence_config.h"
#include "lancet/quant_formats/quant_scheme.h"

namespace lancet {

/// Rotary position embedding (Su et al., arXiv 2104.09864) and its context extensions.
struct RopeConfig {
  enum class Scaling : uint8_t {
    kNone,
    kLinear,    ///< positions divided by `factor`
    kLlama3,    ///< frequencies below a threshold divided by `factor`, with a smooth transition (Llama 3.1)
    kLongRope,  ///< each frequency divided by a factor of its own (LongRoPE, arXiv 2402.13753)
    kYarn,      ///< fast frequencies kept, slow ones divided by `factor`, with a linear transition (arXiv 2309.00071)
    kDynamic    ///< frequencies of kNone; texts beyond max_positions, which would change the base, are refused
  };
  /// Which of a head's dimensions are rotated together.
  enum class Pairs : uint8_t {
    kHalves,   ///< i and i + dim / 2
    kAdjacent  ///< 2 i and 2 i + 1 (GPT-J)
  };
  int64_t dim = 0;  ///< the first `dim` dimensions of each head are rotated; 0: no rotary embedding
  Pairs pairs = Pairs::kHalves;
  bool is_backwards = false;  ///< pairs rotate in the opposite direction
  double theta = 10000.0;
  Scaling scaling = Scaling::kNone;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 1.0;
  double fast_turns = 32.0;           ///< YaRN: frequencies with more turns within the original positions are fast
  double slow_turns = 1.0;            ///< YaRN: frequencies with fewer turns are slow
  bool passes_at_whole_pairs = true;  ///< YaRN: the transition begins and ends at whole pairs of dimensions
  int64_t original_max_positions = 0;
  /// [dim / 2], LongRoPE, for passes of at most original_max_positions positions.
  std::vector<double> short_factors = {};
  std::vector<double> long_factors = {};  ///< [dim / 2], LongRoPE, for longer passes
  double amplitude = 1.0;                 ///< cosines and sines are multiplied by this
  /// Queries at position p are multiplied by 1 + growth * log(1 + floor(p / original_max_positions)).
  double growth = 0;
};

enum class NormKind : uint8_t {
  kRms,          ///< w * round(x / rms(x)) (arXiv 1910.07467)
  kRmsPrecise,   ///< round(w * x / rms(x))
  kRmsPlusOne,   ///< round((1 + w) * x / rms(x))
  kLayer,        ///< LayerNorm (arXiv 1607.06450)
  kLayerPlusOne  ///< LayerNorm with weights 1 + w
};

/// Norm of queries and keys.
enum class HeadNorm : uint8_t {
  kNone,
  kPerHead,   ///< one norm per head, all with the same weights
  kEachHead,  ///< one norm per head, each with its own weights
  kWhole      ///< one norm over all heads together
};

enum class Activation : uint8_t {
  kSilu,
  kGelu,
  kGeluTanh,
  kRelu,
  kReluSquared,
  kXielu,        ///< a square above 0 and an exponential below; each layer has its own weights (arXiv 2411.13010)
  kLimitedSwish  ///< gate * sigmoid(mlp_slope * gate) * (up + 1), both clamped at mlp_limit (gpt-oss)
};

enum class BlockOrder : uint8_t {
  kSequential,  ///< the MLP reads the residual stream after attention
  kParallel     ///< both read the block's input (GPT-J)
};

struct ModelConfig {
  const Family* family = nullptr;
  DType dtype = DType::kF32;  ///< type of the stored weights
  int64_t vocab_size = 0;
  int64_t d_model = 0;
  int64_t d_ffn = 0;  ///< size of the MLP in layers without experts
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t max_positions = 0;
  BlockOrder order = BlockOrder::kSequential;
  NormKind norm = NormKind::kRms;
  double norm_eps = 1e-6;
  bool bare_norms = false;        ///< the norms before the blocks and the head have no weights
  bool normed_embedding = false;  ///< a norm is applied to the embeddings
  bool mlp_norm = true;           ///< the MLP has its own norm before it, if the family's table has one
  bool post_norms = true;         ///< blocks have norms after them, if the family's table has some
  HeadNorm head_norm = HeadNorm::kNone;
  bool norms_turned_heads = false;  ///< queries and keys are rotated before their norm
  double qkv_limit = 0;             ///< queries, keys and values are clamped to +- this; 0: no clamp
  RopeConfig rope;
  std::vector<bool> rotary_layers;        ///< which layers have the rotary embedding; empty: all
  std::optional<RopeConfig> window_rope;  ///< rotary embedding of layers with a window, if it differs
  int64_t window = 0;                     ///< number of tokens that a token in such a layer attends to, itself included
  std::vector<bool> windowed;             ///< which layers have the window; empty: none
  std::vector<double> alibi_slopes;  ///< decrease of each head's scores per position (arXiv 2108.12409); empty: none
  double attention_scale = 0;        ///< scores are multiplied by this
  double attention_cap = 0;          ///< scores become cap * tanh(score / cap); 0: no cap
  double logits_cap = 0;             ///< logits become cap * tanh(logit / cap); 0: no cap
  double logits_scale = 1;           ///< logits are multiplied by this before they are capped
  double embedding_scale = 1;        ///< rounded to the weights' type
  double attention_out_scale = 1;    ///< what attention adds to the residual stream is multiplied by this
  double mlp_out_scale = 1;          ///< what the MLP adds to it is multiplied by this
  double attention_in_scale = 1;     ///< the input of attention is multiplied by this
  int64_t first_position = 0;        ///< row of the first position in the table of learned positions
  ExpertsConfig experts;
  RecurrenceConfig recurrence;
  LatentConfig latent;
  std::vector<bool> attention_layers = {};  ///< which layers have attention; empty: this follows from the mixers
  std::vector<bool> mlp_layers = {};        ///< which layers have an MLP; empty: all
  bool attention_sinks = false;             ///< each head has an extra score, which takes weight and has no value
  bool gated_attention = false;  ///< attention's output is multiplied by a sigmoid of the layer's normed input
  Activation activation = Activation::kSilu;
  double gate_scale = 1;  ///< gates are multiplied by this before their activation
  double mlp_slope = 1;   ///< slope of kLimitedSwish
  double mlp_limit = 0;   ///< limit of kLimitedSwish
  bool gated_mlp = true;  ///< activation(gate) * up; else activation(up)
  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool attention_out_bias = false;
  bool mlp_bias = false;
  bool head_bias = false;
  std::shared_ptr<const QuantScheme> quantised;  ///< how the files quantise matrices; null: they do not
  std::vector<int64_t> eos_ids;                  ///< from generation_config.json if it has them, else from config.json

  bool has_rotary(int64_t layer) const { return rotary_layers.empty() || rotary_layers[static_cast<size_t>(layer)]; }
  bool has_window(int64_t layer) const { return !windowed.empty() && windowed[static_cast<size_t>(layer)]; }
  /// The dimensions of a head in attention. ALiBi adds some to the head's own.
  int64_t attended_dim() const { return alibi_slopes.empty() ? head_dim : head_dim + 8; }
  bool has_recurrence(int64_t layer) const {
    return !recurrence.layers.empty() && recurrence.layers[static_cast<size_t>(layer)];
  }
  bool has_attention(int64_t layer) const {
    if (!attention_layers.empty()) return attention_layers[static_cast<size_t>(layer)];
    return !has_recurrence(layer) || recurrence.has_attention;
  }
  /// Whether a token of the layer reads earlier tokens, by attention or by a mixer.
  bool has_mixing(int64_t layer) const { return has_attention(layer) || has_recurrence(layer); }
  bool has_mlp(int64_t layer) const { return mlp_layers.empty() || mlp_layers[static_cast<size_t>(layer)]; }
  /// Returns the layers that have an MLP and so can be edited.
  std::vector<int64_t> layers_with_mlp() const;
  /// The input size of attention's output projection.
  int64_t attended_size() const { return n_heads * (latent.rank > 0 ? latent.value_dim : head_dim); }
  bool has_experts(int64_t layer) const { return experts.count > 0 && experts.layers[static_cast<size_t>(layer)]; }
  /// Whether the layer has a shared MLP beside its experts, for all tokens.
  bool has_shared_mlp(int64_t layer) const { return has_experts(layer) && experts.shared > 0; }

  KeyShape key_shape(int64_t layer) const;
  /// Returns the keys' shape in the layer that has the largest.
  KeyShape largest_keys() const;
  /// Returns the largest MLP width that a single token goes through.
  int64_t active_ffn() const;
  /// Returns the number of tokens that a covariance of keys needs for full rank. With experts, it is the number that
  /// gives each expert as many tokens as its width on average.
  int64_t least_tokens() const;

 private:
  int64_t widest_dense() const;  ///< d_ffn; 0 where all layers have experts
};

/// Reads config.json as transformers 4 and 5 write it. `ignored_keys`: unknown keys that the user declares harmless.
/// Throws: CheckpointError with all problems at once: missing or wrong keys, an unknown family, a key that would change
/// the computation and is not supported, a key that is in none of the family's lists (remedy: ignore_config_keys).
ModelConfig parse_model_config(std::string_view config_json, std::string_view generation_config_json,
                               std::span<const std::string> ignored_keys, std::string_view where);

/// Reads a checkpoint's config.json and generation_config.json.
ModelConfig load_model_config(const Checkpoint& checkpoint, std::span<const std::string> ignored_keys = {});

}  // namespace lancet
