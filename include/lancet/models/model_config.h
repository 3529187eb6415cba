// What config.json says about a model, as plain fields. Code branches on these, never on names.
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

/// Rotary position embedding (Su et al., arXiv 2104.09864) and its stretchings.
struct RopeConfig {
  enum class Scaling : uint8_t {
    kNone,
    kLinear,    ///< positions divided by `factor`
    kLlama3,    ///< frequencies below a threshold divided by `factor`, with a smooth passage (Llama 3.1)
    kLongRope,  ///< each frequency divided by a factor of its own (LongRoPE, arXiv 2402.13753)
    kYarn,      ///< fast frequencies kept, slow ones divided by `factor`, with a linear passage (arXiv 2309.00071)
    kDynamic    ///< frequencies of kNone: texts beyond max_positions, which would change the base, are refused
  };
  /// Which of a head's numbers turn together.
  enum class Pairs : uint8_t {
    kHalves,   ///< i and i + dim / 2
    kAdjacent  ///< 2 i and 2 i + 1 (GPT-J)
  };
  int64_t dim = 0;  ///< numbers of each head that are turned, the first ones; 0: no rotary embedding
  Pairs pairs = Pairs::kHalves;
  bool is_backwards = false;  ///< pairs turn the other way
  double theta = 10000.0;
  Scaling scaling = Scaling::kNone;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 1.0;
  double fast_turns = 32.0;           ///< YaRN: what turns more often within the original positions is fast
  double slow_turns = 1.0;            ///< YaRN: what turns less often is slow
  bool passes_at_whole_pairs = true;  ///< YaRN: the passage begins and ends at whole pairs of numbers
  int64_t original_max_positions = 0;
  std::vector<double> short_factors =
      {};  ///< [dim / 2], LongRoPE, of passes of at most original_max_positions positions
  std::vector<double> long_factors = {};  ///< likewise, of longer passes
  double amplitude = 1.0;                 ///< factor of cosines and sines
  double growth = 0;  ///< queries at position p grow by 1 + growth * log(1 + floor(p / original_max_positions))
};

enum class NormKind : uint8_t {
  kRms,          ///< w * round(x / rms(x)) (arXiv 1910.07467)
  kRmsPrecise,   ///< round(w * x / rms(x))
  kRmsPlusOne,   ///< round((1 + w) * x / rms(x))
  kLayer,        ///< LayerNorm (arXiv 1607.06450)
  kLayerPlusOne  ///< LayerNorm by 1 + w
};

/// Norm of queries and keys.
enum class HeadNorm : uint8_t {
  kNone,
  kPerHead,   ///< one for each head, all with the same weights
  kEachHead,  ///< one for each head, with weights of its own
  kWhole      ///< one for all heads together
};

enum class Activation : uint8_t {
  kSilu,
  kGelu,
  kGeluTanh,
  kRelu,
  kReluSquared,
  kXielu,        ///< a square above 0 and an exponential below, each layer with weights of its own (arXiv 2411.13010)
  kLimitedSwish  ///< gate * sigmoid(mlp_slope * gate) * (up + 1), both cut at mlp_limit (gpt-oss)
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
  int64_t d_ffn = 0;  ///< size of layers without experts
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t max_positions = 0;
  BlockOrder order = BlockOrder::kSequential;
  NormKind norm = NormKind::kRms;
  double norm_eps = 1e-6;
  bool bare_norms = false;        ///< norms before the blocks and the head have no weights
  bool normed_embedding = false;  ///< embeddings are normed
  bool mlp_norm = true;           ///< the MLP has a norm of its own before it, where the family's table has one
  bool post_norms = true;         ///< blocks have norms behind them, where the family's table has some
  HeadNorm head_norm = HeadNorm::kNone;
  bool norms_turned_heads = false;  ///< queries and keys are turned before they are normed
  double qkv_limit = 0;             ///< queries, keys and values are cut to +- this; 0: they stay
  RopeConfig rope;
  std::vector<bool> rotary_layers;        ///< which layers have the rotary embedding; empty: all
  std::optional<RopeConfig> window_rope;  ///< rotary embedding of layers with a window, where it is another
  int64_t window = 0;                     ///< tokens that a token of such a layer attends to, itself included
  std::vector<bool> windowed;             ///< which layers have the window; empty: none
  std::vector<double> alibi_slopes;       ///< what scores of each head fall by with each position (arXiv 2108.12409);
                                          ///< empty: they do not
  double attention_scale = 0;             ///< factor of scores
  double attention_cap = 0;               ///< scores become cap * tanh(score / cap); 0: they stay
  double logits_cap = 0;                  ///< likewise
  double logits_scale = 1;                ///< factor of logits, before they are capped
  double embedding_scale = 1;             ///< rounded to the weights' type
  double attention_out_scale = 1;         ///< factor of what attention adds to the residual stream
  double mlp_out_scale = 1;               ///< likewise the MLP
  double attention_in_scale = 1;          ///< factor of what attention reads
  int64_t first_position = 0;             ///< row of the first position in the table of learned ones
  ExpertsConfig experts;
  RecurrenceConfig recurrence;
  LatentConfig latent;
  std::vector<bool> attention_layers = {};  ///< which layers have attention; empty: as the mixers say
  std::vector<bool> mlp_layers = {};        ///< which layers have an MLP; empty: all
  bool attention_sinks = false;  ///< each head's weights share their sum with a score of its own, which has no value
  bool gated_attention = false;  ///< attention's results are multiplied by a sigmoid of the layer's normed input
  Activation activation = Activation::kSilu;
  double gate_scale = 1;  ///< factor of gates before their activation
  double mlp_slope = 1;   ///< kLimitedSwish's
  double mlp_limit = 0;   ///< likewise
  bool gated_mlp = true;  ///< activation(gate) * up; else activation(up)
  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool attention_out_bias = false;
  bool mlp_bias = false;
  bool head_bias = false;
  std::shared_ptr<const QuantScheme> quantised;  ///< how the file's matrices are; null: they are not
  std::vector<int64_t> eos_ids;                  ///< generation_config.json's where it has them, else config.json's

  bool has_rotary(int64_t layer) const { return rotary_layers.empty() || rotary_layers[static_cast<size_t>(layer)]; }
  bool has_window(int64_t layer) const { return !windowed.empty() && windowed[static_cast<size_t>(layer)]; }
  /// Numbers of a head in attention: ALiBi adds some to its own.
  int64_t attended_dim() const { return alibi_slopes.empty() ? head_dim : head_dim + 8; }
  bool has_recurrence(int64_t layer) const {
    return !recurrence.layers.empty() && recurrence.layers[static_cast<size_t>(layer)];
  }
  bool has_attention(int64_t layer) const {
    if (!attention_layers.empty()) return attention_layers[static_cast<size_t>(layer)];
    return !has_recurrence(layer) || recurrence.has_attention;
  }
  /// Whether tokens of the layer read those before them, by attention or by a mixer.
  bool has_mixing(int64_t layer) const { return has_attention(layer) || has_recurrence(layer); }
  bool has_mlp(int64_t layer) const { return mlp_layers.empty() || mlp_layers[static_cast<size_t>(layer)]; }
  /// Layers that have an MLP, and so can be edited.
  std::vector<int64_t> layers_with_mlp() const;
  /// Numbers that attention's output projection reads.
  int64_t attended_size() const { return n_heads * (latent.rank > 0 ? latent.value_dim : head_dim); }
  bool has_experts(int64_t layer) const { return experts.count > 0 && experts.layers[static_cast<size_t>(layer)]; }
  /// Whether all tokens go through an MLP beside the layer's experts.
  bool has_shared_mlp(int64_t layer) const { return has_experts(layer) && experts.shared > 0; }

  KeyShape key_shape(int64_t layer) const;
  /// Returns the keys' shape in the layer that has the largest.
  KeyShape largest_keys() const;
  /// Numbers of its MLP that a token goes through at most.
  int64_t active_ffn() const;
  /// Tokens without which no covariance of keys has full rank: of experts, as many as bring each its width on average.
  int64_t least_tokens() const;

 private:
  int64_t widest_dense() const;  ///< d_ffn; 0 where all layers have experts
};

/// Reads config.json as transformers 4 and 5 write it. `ignored_keys`: keys of neither list that the user vouches for.
/// Throws: CheckpointError with every problem at once: missing or wrong keys, an unknown family, a key that would
/// change the computation and is not supported, a key in none of the family's lists (remedy: ignore_config_keys).
ModelConfig parse_model_config(std::string_view config_json, std::string_view generation_config_json,
                               std::span<const std::string> ignored_keys, std::string_view where);

/// Reads a checkpoint's config.json and generation_config.json.
ModelConfig load_model_config(const Checkpoint& checkpoint, std::span<const std::string> ignored_keys = {});

}  // namespace lancet
