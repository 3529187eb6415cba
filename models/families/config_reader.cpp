#include "config_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lancet/core/strings.h"
#include "rope_reader.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

}  // namespace

ConfigReader::ConfigReader(const Json& object, std::string prefix, std::vector<std::string>& problems)
    : object_(object), prefix_(std::move(prefix)), problems_(problems) {}

const Json* ConfigReader::find(std::string_view key) const {
  const auto at = object_.find(key);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

bool ConfigReader::is_null(std::string_view key) const { return object_.contains(key) && find(key) == nullptr; }

int64_t ConfigReader::positive(std::string_view key, std::optional<int64_t> fallback) {
  const Json* value = find(key);
  if (value == nullptr && fallback) return *fallback;
  if (value != nullptr && value->is_number_integer() && value->get<int64_t>() > 0) return value->get<int64_t>();
  problem(key, "a positive integer");
  return 1;
}

int64_t ConfigReader::size(std::string_view key, int64_t most, std::optional<int64_t> fallback) {
  const int64_t value = positive(key, fallback);
  if (value <= most) return value;
  problem(key, cat("at most ", most));
  return 1;
}

double ConfigReader::number(std::string_view key, std::optional<double> fallback) {
  const Json* value = find(key);
  if (value == nullptr && fallback) return *fallback;
  if (value != nullptr && value->is_number()) return value->get<double>();
  problem(key, "a number");
  return 1.0;
}

double ConfigReader::above_zero(std::string_view key, std::optional<double> fallback) {
  const double value = number(key, fallback);
  if (value > 0) return value;
  problem(key, "a number above 0");
  return 1.0;
}

double ConfigReader::at_least(std::string_view key, double least, std::optional<double> fallback) {
  const double value = number(key, fallback);
  if (value >= least) return value;
  problem(key, cat("a number of at least ", least));
  return std::max(least, 1.0);
}

double ConfigReader::share(std::string_view key, double fallback) {
  const double value = number(key, fallback);
  if (value > 0 && value <= 1) return value;
  problem(key, "a number above 0, of at most 1");
  return 1.0;
}

bool ConfigReader::flag_or(std::string_view key, bool fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  problem(key, "true or false");
  return fallback;
}

bool ConfigReader::flag(std::string_view key) { return flag_or(key, false); }
bool ConfigReader::flag_or_true(std::string_view key) { return flag_or(key, true); }

std::string ConfigReader::text(std::string_view key, const std::string& fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_string()) return value->get<std::string>();
  problem(key, "a string");
  return fallback;
}

std::vector<double> ConfigReader::numbers(std::string_view key, int64_t count) {
  std::vector<double> numbers;
  const Json* value = find(key);
  if (value != nullptr && value->is_array())
    for (const Json& number : *value)
      if (number.is_number() && number > 0) numbers.push_back(number.get<double>());
  if (value == nullptr || std::ssize(numbers) != count || std::ssize(*value) != count)
    problem(key, cat("a list of ", count, " numbers above 0"));
  numbers.resize(static_cast<size_t>(count), 1.0);
  return numbers;
}

std::vector<std::string> ConfigReader::texts(std::string_view key) {
  std::vector<std::string> texts;
  const Json* value = find(key);
  if (value == nullptr) return texts;
  if (value->is_array())
    for (const Json& text : *value)
      if (text.is_string()) texts.push_back(text.get<std::string>());
  if (!value->is_array() || texts.size() != value->size()) problem(key, "a list of strings");
  return texts;
}

std::vector<int64_t> ConfigReader::indices(std::string_view key, int64_t size) {
  std::vector<int64_t> indices;
  const Json* value = find(key);
  if (value == nullptr) return indices;
  if (value->is_array())
    for (const Json& index : *value)
      if (index.is_number_integer() && index >= 0 && index < size) indices.push_back(index.get<int64_t>());
  if (!value->is_array() || indices.size() != value->size())
    problem(key, cat("a list of whole numbers from 0 to ", size - 1));
  return indices;
}

std::optional<ConfigReader> ConfigReader::object(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) return ConfigReader(*value, cat(prefix_, key, "."), problems_);
  problem(key, "an object");
  return std::nullopt;
}

void ConfigReader::problem(std::string_view key, std::string_view expected) {
  const auto got = object_.find(key);
  problems_.push_back(
      cat(prefix_, key, ": expected ", expected, ", got ", got == object_.end() ? "nothing" : got->dump()));
}

void ConfigReader::refuse_others(std::span<const std::string_view> known, std::string_view whose) {
  const std::vector<std::string> names(known.begin(), known.end());
  for (const auto& [key, value] : object_.items())
    if (!value.is_null() && std::ranges::find(known, key) == known.end())
      problems_.push_back(cat(prefix_, key, ": unknown key of ", whose, ", which has ", join(names),
                              ": if it does not change the computation, take it out of config.json"));
}

bool ConfigReader::is_wrong(std::string_view key) const {
  const std::string begin = cat(prefix_, key, ": ");
  return std::ranges::any_of(problems_, [&](const std::string& problem) { return problem.starts_with(begin); });
}

void read_sizes(ConfigReader& keys, ModelConfig& config, const SizeKeys& names) {
  config.d_model = keys.size(names.model, kMostWide);
  if (!names.layers.empty()) config.n_layers = keys.size(names.layers, kMostLayers);
  config.n_heads = keys.size(names.heads, kMostHeads, names.default_heads);
  config.n_kv_heads = config.n_heads;
  config.head_dim = std::max<int64_t>(config.d_model / config.n_heads, 1);
  if (config.d_model % config.n_heads != 0 && !keys.has("head_dim") && !names.default_heads)
    keys.problem(names.model, cat("a multiple of ", names.heads, ", ", config.n_heads));
  config.max_positions = keys.size(names.positions, kMostPositions, names.default_positions);
  config.d_ffn = names.ffn_of_model > 0 ? keys.size(names.ffn, kMostWide, names.ffn_of_model * config.d_model)
                                        : keys.size(names.ffn, kMostWide);
}

void read_grouped_sizes(ConfigReader& keys, ModelConfig& config, const SizeKeys& names) {
  read_sizes(keys, config, names);
  config.n_kv_heads = keys.size("num_key_value_heads", kMostHeads, names.default_kv_heads.value_or(config.n_heads));
  config.head_dim = keys.size("head_dim", kMostHeads, names.default_head_dim.value_or(config.head_dim));
}

Activation read_activation(ConfigReader& keys, std::string_view key, const std::string& fallback) {
  const std::string name = keys.text(key, fallback);
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "gelu") return Activation::kGelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return Activation::kGeluTanh;
  if (name == "relu") return Activation::kRelu;
  if (name == "relu2") return Activation::kReluSquared;
  keys.problem(key, "silu, gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu or relu2");
  return Activation::kSilu;
}

void read_llama_fields(ConfigReader& keys, ModelConfig& config, const SizeKeys& names, double default_eps,
                       double default_theta) {
  read_grouped_sizes(keys, config, names);
  config.norm_eps = keys.number("rms_norm_eps", default_eps);
  config.rope = read_rope(keys, config, {.theta = default_theta});
  config.activation = read_activation(keys, "hidden_act", "silu");
}

void read_gpt_fields(ConfigReader& keys, ModelConfig& config) {
  config.norm = NormKind::kLayer;
  config.norm_eps = keys.number("layer_norm_epsilon", 1e-5);
  config.gated_mlp = false;
  config.tied_embeddings = keys.flag_or_true("tie_word_embeddings");
}

void read_gpt2_block(ConfigReader& keys, ModelConfig& config, const std::string& default_activation) {
  read_sizes(keys, config, kGptSizes);
  read_gpt_fields(keys, config);
  config.activation = read_activation(keys, "activation_function", default_activation);
  config.qkv_bias = config.attention_out_bias = config.mlp_bias = true;
  if (!keys.flag_or_true("scale_attn_weights")) config.attention_scale = 1;
}

void read_windows(ConfigReader& keys, ModelConfig& config, const std::function<bool(int64_t layer)>& slides,
                  int64_t default_window) {
  const bool is_there = keys.has("sliding_window");
  config.window = is_there ? keys.positive("sliding_window") : keys.is_null("sliding_window") ? 0 : default_window;
  const std::vector<std::string> types = keys.texts("layer_types");
  if (!types.empty() && static_cast<int64_t>(types.size()) != config.n_layers) {
    keys.problem("layer_types", cat("one for each of the ", config.n_layers, " layers"));
    return;
  }
  std::vector<bool> windowed;
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    if (!types.empty() && types[static_cast<size_t>(layer)] != "sliding_attention" &&
        types[static_cast<size_t>(layer)] != "full_attention") {
      keys.problem("layer_types", "sliding_attention or full_attention");
      return;
    }
    windowed.push_back(types.empty() ? slides(layer) : types[static_cast<size_t>(layer)] == "sliding_attention");
  }
  if (config.window > 0) config.windowed = std::move(windowed);
}

void turn_windows_alone(ModelConfig& config) {
  for (int64_t layer = 0; layer < config.n_layers; ++layer) config.rotary_layers.push_back(config.has_window(layer));
}

ExpertsConfig read_experts(ConfigReader& keys, std::string_view count_key, ExpertsConfig defaults) {
  ExpertsConfig experts = std::move(defaults);
  experts.count = keys.size(count_key, kMostExperts, experts.count);
  experts.chosen = keys.size("num_experts_per_tok", kMostExperts, experts.chosen);
  if (experts.chosen > experts.count && !keys.is_wrong(count_key))
    keys.problem("num_experts_per_tok", cat("at most ", count_key, ", ", experts.count));
  return experts;
}

void read_upper_windows(ConfigReader& keys, ModelConfig& config) {
  const int64_t first = keys.positive("max_window_layers", 28);
  if (keys.flag("use_sliding_window")) read_windows(keys, config, [first](int64_t layer) { return layer >= first; });
}

}  // namespace lancet
