// Reads keys of config.json one by one, and collects what is wrong with them.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/models/model_config.h"

namespace lancet {

class ConfigReader {
 public:
  /// The object and the list must outlive the reader.
  ConfigReader(const nlohmann::json& object, std::string prefix, std::vector<std::string>& problems);

  /// Returns null if the key is absent, or its value is null.
  const nlohmann::json* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// Whether the key is present with the value null.
  bool is_null(std::string_view key) const;

  int64_t positive(std::string_view key, std::optional<int64_t> fallback = {});
  /// Reads a size that decides how much memory is needed. `most` is far beyond the size of any model.
  int64_t size(std::string_view key, int64_t most, std::optional<int64_t> fallback = {});
  double number(std::string_view key, std::optional<double> fallback = {});
  double above_zero(std::string_view key, std::optional<double> fallback = {});
  double at_least(std::string_view key, double least, std::optional<double> fallback = {});
  /// Reads a share: above 0, at most 1.
  double share(std::string_view key, double fallback);
  /// Reads true or false; false if it is absent.
  bool flag(std::string_view key);
  bool flag_or_true(std::string_view key);
  std::string text(std::string_view key, const std::string& fallback);
  /// Reads `count` numbers above 0.
  std::vector<double> numbers(std::string_view key, int64_t count);
  std::vector<std::string> texts(std::string_view key);
  /// Reads whole numbers from 0 to size - 1; none if the key is absent.
  std::vector<int64_t> indices(std::string_view key, int64_t size);
  /// Returns the keys of an object under `key`; nullopt if there is none.
  std::optional<ConfigReader> object(std::string_view key);

  /// Adds a problem for every key of the object that is not among `known`, which are the keys of `whose`.
  void refuse_others(std::span<const std::string_view> known, std::string_view whose);
  /// Adds the problem that the value of `key` is not as expected.
  void problem(std::string_view key, std::string_view expected);
  /// Whether such a problem was added: then other values are not checked against it.
  bool is_wrong(std::string_view key) const;

 private:
  bool flag_or(std::string_view key, bool fallback);

  const nlohmann::json& object_;
  std::string prefix_;
  std::vector<std::string>& problems_;
};

// Larger than in any model, but so small that products of these numbers fit, and that lists of this length can be
// allocated.
constexpr int64_t kMostLayers = 10'000;
constexpr int64_t kMostHeads = 65'536;     // also for the numbers of a head
constexpr int64_t kMostWide = 16'777'216;  // for hidden size, MLP, vocabulary
constexpr int64_t kMostExperts = 16'384;
constexpr int64_t kMostPositions = 2'147'483'647;

/// The names of the keys for sizes.
struct SizeKeys {
  std::string_view model = "hidden_size";
  std::string_view ffn = "intermediate_size";
  std::string_view layers = "num_hidden_layers";  ///< empty: another key, which was read before, gives the number
  std::string_view heads = "num_attention_heads";
  std::string_view positions = "max_position_embeddings";
  // used if the key is absent
  int64_t default_positions = 2048;
  int64_t ffn_of_model = 0;  ///< the MLP's size as a multiple of the hidden size; 0: the key is required
  std::optional<int64_t> default_heads = {}, default_kv_heads = {}, default_head_dim = {};
};
/// The keys of GPT-2 and GPT-J.
constexpr SizeKeys kGptSizes{.model = "n_embd",
                             .ffn = "n_inner",
                             .layers = "n_layer",
                             .heads = "n_head",
                             .positions = "n_positions",
                             .ffn_of_model = 4};

/// Reads the sizes of families with one kind of head: n_kv_heads = n_heads, head_dim = d_model / n_heads.
void read_sizes(ConfigReader& keys, ModelConfig& config, const SizeKeys& names = {});
/// As read_sizes(), and reads num_key_value_heads and head_dim.
void read_grouped_sizes(ConfigReader& keys, ModelConfig& config, const SizeKeys& names = {});

/// Reads "silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "relu", "relu2" under `key`.
Activation read_activation(ConfigReader& keys, std::string_view key, const std::string& fallback);

/// Reads what most descendants of Llama have: sizes, RMSNorm's eps, rotary embedding of whole heads, activation.
void read_llama_fields(ConfigReader& keys, ModelConfig& config, const SizeKeys& names = {}, double default_eps = 1e-6,
                       double default_theta = 1e4);

/// Reads what GPT-2 and its descendants have: LayerNorm's eps, an MLP without a gate, a head that is tied to the
/// embedding unless the file says otherwise.
void read_gpt_fields(ConfigReader& keys, ModelConfig& config);
/// Reads what the blocks of GPT-2 and BigCode have in addition: sizes, biases everywhere, scores that may stay
/// unscaled.
void read_gpt2_block(ConfigReader& keys, ModelConfig& config, const std::string& default_activation);

/// Reads which layers have the window: from `layer_types` if it is present, else from `slides`. `default_window`: used
/// if the key is absent; 0: none.
void read_windows(ConfigReader& keys, ModelConfig& config, const std::function<bool(int64_t layer)>& slides,
                  int64_t default_window = 0);

/// Makes only the layers with a window use the rotary embedding.
void turn_windows_alone(ModelConfig& config);

/// Reads the number of experts from the given key, and how many of them a token goes through. Everything else is as in
/// `defaults`.
ExpertsConfig read_experts(ConfigReader& keys, std::string_view count_key, ExpertsConfig defaults);

/// Reads Qwen's keys: with use_sliding_window, the layers from max_window_layers on have the window.
void read_upper_windows(ConfigReader& keys, ModelConfig& config);

}  // namespace lancet
