// Keys of config.json, read one by one; what is wrong with them is collected.
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
  /// The object and the list outlive the reader.
  ConfigReader(const nlohmann::json& object, std::string prefix, std::vector<std::string>& problems);

  /// Absent, null: no value.
  const nlohmann::json* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// There, as null.
  bool is_null(std::string_view key) const;

  int64_t positive(std::string_view key, std::optional<int64_t> fallback = {});
  /// What memory is taken by: at most `most`, which is far beyond any model's.
  int64_t size(std::string_view key, int64_t most, std::optional<int64_t> fallback = {});
  double number(std::string_view key, std::optional<double> fallback = {});
  double above_zero(std::string_view key, std::optional<double> fallback = {});
  double at_least(std::string_view key, double least, std::optional<double> fallback = {});
  /// Reads a share: above 0, at most 1.
  double share(std::string_view key, double fallback);
  /// true or false; absent: false.
  bool flag(std::string_view key);
  bool flag_or_true(std::string_view key);
  std::string text(std::string_view key, const std::string& fallback);
  /// `count` numbers above 0.
  std::vector<double> numbers(std::string_view key, int64_t count);
  std::vector<std::string> texts(std::string_view key);
  /// Whole numbers from 0 to size - 1; absent: none.
  std::vector<int64_t> indices(std::string_view key, int64_t size);
  /// The keys of an object under `key`; nullopt when there is none.
  std::optional<ConfigReader> object(std::string_view key);

  /// Notes every key of the object that is not among `known`, `whose` keys these are.
  void refuse_others(std::span<const std::string_view> known, std::string_view whose);
  /// Notes that the value of `key` is not what was expected.
  void problem(std::string_view key, std::string_view expected);
  /// Whether that was noted: then no other value is wrong by it.
  bool is_wrong(std::string_view key) const;

 private:
  bool flag_or(std::string_view key, bool fallback);

  const nlohmann::json& object_;
  std::string prefix_;
  std::vector<std::string>& problems_;
};

// Beyond any model's, and small enough for their products and for lists of so many to be taken.
constexpr int64_t kMostLayers = 10'000;
constexpr int64_t kMostHeads = 65'536;     // and numbers of a head
constexpr int64_t kMostWide = 16'777'216;  // hidden size, MLP, vocabulary
constexpr int64_t kMostExperts = 16'384;
constexpr int64_t kMostPositions = 2'147'483'647;

/// What the keys of sizes are called.
struct SizeKeys {
  std::string_view model = "hidden_size";
  std::string_view ffn = "intermediate_size";
  std::string_view layers = "num_hidden_layers";  ///< empty: another key says how many, which was read before
  std::string_view heads = "num_attention_heads";
  std::string_view positions = "max_position_embeddings";
  // where the key may be left out
  int64_t default_positions = 2048;
  int64_t ffn_of_model = 0;  ///< the MLP's size by the hidden size; 0: the key has to be there
  std::optional<int64_t> default_heads = {}, default_kv_heads = {}, default_head_dim = {};
};
/// GPT-2's and GPT-J's.
constexpr SizeKeys kGptSizes{.model = "n_embd",
                             .ffn = "n_inner",
                             .layers = "n_layer",
                             .heads = "n_head",
                             .positions = "n_positions",
                             .ffn_of_model = 4};

/// Sizes of all families with one kind of head: n_kv_heads = n_heads, head_dim = d_model / n_heads.
void read_sizes(ConfigReader& keys, ModelConfig& config, const SizeKeys& names = {});
/// Reads likewise, with num_key_value_heads and head_dim.
void read_grouped_sizes(ConfigReader& keys, ModelConfig& config, const SizeKeys& names = {});

/// "silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "relu", "relu2" under `key`.
Activation read_activation(ConfigReader& keys, std::string_view key, const std::string& fallback);

/// What most of Llama's descendants read: sizes, RMSNorm's eps, rotary embedding of whole heads, activation.
void read_llama_fields(ConfigReader& keys, ModelConfig& config, const SizeKeys& names = {}, double default_eps = 1e-6,
                       double default_theta = 1e4);

/// What GPT-2 and its descendants read: LayerNorm's eps, an MLP without a gate, a head that is the embedding unless the
/// file says otherwise.
void read_gpt_fields(ConfigReader& keys, ModelConfig& config);
/// What GPT-2's block and BigCode's read beside that: sizes, biases everywhere, scores that may stay unscaled.
void read_gpt2_block(ConfigReader& keys, ModelConfig& config, const std::string& default_activation);

/// Which layers have the window: `layer_types` where it is there, else what `slides` says.
/// `default_window`: where the key is left out; 0: none.
void read_windows(ConfigReader& keys, ModelConfig& config, const std::function<bool(int64_t layer)>& slides,
                  int64_t default_window = 0);

/// Turns the queries and keys of layers with a window alone.
void turn_windows_alone(ModelConfig& config);

/// How many experts there are, by the key that says so, and how many of them a token goes through; else as in
/// `defaults`.
ExpertsConfig read_experts(ConfigReader& keys, std::string_view count_key, ExpertsConfig defaults);

/// Qwen's: with use_sliding_window, of the layers from max_window_layers on.
void read_upper_windows(ConfigReader& keys, ModelConfig& config);

}  // namespace lancet
