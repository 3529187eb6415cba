// config.json of a GGUF file's metadata, as transformers would have it.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "architectures.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "small_numbers.h"

namespace lancet {
namespace {

/// A number that all layers have: a list has one for each layer.
std::optional<double> number_of_layers(const GgufFile& file, const std::string& key) {
  const std::vector<double> numbers = file.numbers(key);
  if (numbers.empty()) return std::nullopt;
  if (std::ranges::any_of(numbers, [&](double number) { return number != numbers.front(); }))
    file.refuse(key, "one number for all layers", "several");
  return numbers.front();
}

void add_key(const GgufFile& file, const GgufKeyRow& row, OrderedJson& config) {
  const std::string key = own_key(file, row.file);
  const std::optional<double> number = number_of_layers(file, key);
  if (!number) return;
  constexpr double kMostWhole = 1e15;
  const bool is_whole = std::abs(*number) <= kMostWhole && std::floor(*number) == *number;
  switch (row.kind) {
    case GgufKeyKind::kWhole:
      if (!is_whole) file.refuse(key, "a whole number", cat(*number));
      config[std::string(row.config)] = static_cast<int64_t>(*number);
      return;
    case GgufKeyKind::kNumber:
      if (!std::isfinite(*number)) file.refuse(key, "a finite number", cat(*number));
      config[std::string(row.config)] = *number;
      return;
    case GgufKeyKind::kFlag:
      config[std::string(row.config)] = *number != 0;
      return;
  }
}

/// Whether the class has the key, by the architecture's row.
bool has_config_key(const GgufArchitecture& architecture, std::string_view key) {
  return std::ranges::any_of(architecture.keys, [&](const auto& rows) {
    return std::ranges::find(rows, key, &GgufKeyRow::config) != rows.end();
  });
}

void add_norm(const GgufFile& file, const GgufArchitecture& architecture, OrderedJson& config) {
  const std::string norm_key(architecture.norm_key);
  for (const char* name : {"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"})
    if (const std::optional<double> eps = file.number(own_key(file, name))) config[norm_key] = *eps;
  if (!config.contains(norm_key))
    file.refuse(own_key(file, "attention.layer_norm_rms_epsilon"), "the norms' epsilon", "none");
}

}  // namespace

std::vector<float> small_numbers(const GgufFile& file, const GgufTensor& tensor) {
  constexpr uint64_t kMost = 65'536;
  if (tensor.type->dtype != DType::kF32 || tensor.shape.size() != 1 || tensor.bytes > kMost)
    throw CheckpointError(cat(file.path().string(), ": tensor '", tensor.name,
                              "': expected a short vector of F32, got another tensor: take the model's safetensors"));
  std::vector<float> numbers(tensor.bytes / sizeof(float));
  file.files()[tensor.file]->read(tensor.begin, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

namespace {

/// The tensor has numbers, config.json what they were computed of: published models have one original length.
void add_llama3_rope(const GgufFile& file, const GgufTensor& tensor, double theta, OrderedJson& config) {
  const auto refuse = [&](std::string_view got) {
    throw CheckpointError(cat(file.path().string(), ": tensor 'rope_freqs.weight': expected Llama 3's factors of ",
                              "frequencies, got ", got, ", which lancet does not read: take the model's safetensors"));
  };
  const std::vector<float> numbers = small_numbers(file, tensor);
  if (std::ranges::all_of(numbers, [](float number) { return number == 1.0F; })) return;
  const double factor = static_cast<double>(std::ranges::max(numbers));
  constexpr double kNear = 1e-4;
  for (const double original : {8192.0, 4096.0, 16384.0, 32768.0, 2048.0, 32.0}) {
    const std::vector<double> expected = llama3_factors(numbers.size(), theta, factor, original);
    bool is_same = true;
    for (size_t i = 0; i < numbers.size(); ++i)
      is_same = is_same && std::abs(static_cast<double>(numbers[i]) - expected[i]) <= kNear * expected[i];
    if (!is_same) continue;
    config["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", factor},
                              {"low_freq_factor", 1.0},
                              {"high_freq_factor", 4.0},
                              {"original_max_position_embeddings", static_cast<int64_t>(original)}};
    return;
  }
  refuse("others");
}

void add_rope(const GgufFile& file, OrderedJson& config) {
  const double theta = file.number(own_key(file, "rope.freq_base")).value_or(1e4);
  config["rope_theta"] = theta;
  const std::string key = own_key(file, "rope.scaling.type");
  const std::string type = file.text(key).value_or("none");
  const std::optional<double> factor = file.number(own_key(file, "rope.scaling.factor"));
  if (const GgufTensor* tensor = file.find_tensor("rope_freqs.weight")) add_llama3_rope(file, *tensor, theta, config);
  if (type == "none" || type.empty()) return;
  if ((type != "linear" && type != "yarn") || !factor)
    file.refuse(key, "none, or linear or yarn with rope.scaling.factor",
                cat("'", type, "': take the model's safetensors"));
  if (type == "linear" && *factor == 1) return;
  config["rope_scaling"] = {{"rope_type", type}, {"factor", *factor}};
  if (type != "yarn") return;
  if (const auto original = file.whole(own_key(file, "rope.scaling.original_context_length")))
    config["rope_scaling"]["original_max_position_embeddings"] = *original;
  for (const char* name : {"beta_fast", "beta_slow"})
    if (const auto turns = file.number(own_key(file, cat("rope.scaling.yarn_", name))))
      config["rope_scaling"][name] = *turns;
}

void add_tokens(const GgufFile& file, OrderedJson& config) {
  constexpr std::pair<const char*, const char*> kTokens[] = {{"tokenizer.ggml.bos_token_id", "bos_token_id"},
                                                             {"tokenizer.ggml.padding_token_id", "pad_token_id"}};
  for (const auto& [key, name] : kTokens)
    if (const std::optional<int64_t> id = file.whole(key)) config[name] = *id;
  std::vector<int64_t> ends;
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (const std::optional<int64_t> id = file.whole(key); id && std::ranges::find(ends, *id) == ends.end())
      ends.push_back(*id);
  if (ends.size() == 1) config["eos_token_id"] = ends.front();
  if (ends.size() > 1) config["eos_token_id"] = ends;
}

/// The type that a model in full precision has; of quantised matrices the one that transformers makes of them.
std::string dtype_of(const GgufFile& file) {
  std::set<DType> types;
  for (const GgufTensor& tensor : file.tensors()) {
    if (!tensor.type->is_plain()) return "bfloat16";
    if (tensor.shape.size() > 1) types.insert(*tensor.type->dtype);
  }
  if (types == std::set{DType::kF16}) return "float16";
  return types.contains(DType::kBF16) ? "bfloat16" : "float32";
}

}  // namespace

std::vector<double> llama3_factors(size_t count, double theta, double factor, double original) {
  constexpr double kLow = 1, kHigh = 4;
  std::vector<double> factors;
  for (size_t i = 0; i < count; ++i) {
    const double wave = 2 * std::numbers::pi * std::pow(theta, static_cast<double>(i) / static_cast<double>(count));
    const double smooth = (original / wave - kLow) / (kHigh - kLow);
    factors.push_back(wave < original / kHigh  ? 1
                      : wave > original / kLow ? factor
                                               : 1 / ((1 - smooth) / factor + smooth));
  }
  return factors;
}

int64_t head_size(const OrderedJson& config) {
  const auto either = [&](const char* name, const char* of_gpt, int64_t otherwise) {
    return config.value(name, config.value(of_gpt, otherwise));
  };
  const int64_t heads = std::max<int64_t>(1, either("num_attention_heads", "n_head", 1));
  return config.value("head_dim", either("hidden_size", "n_embd", 0) / heads);
}

double turned_size(const OrderedJson& config) {
  if (config.contains("rotary_dim")) return config.value("rotary_dim", 0.0);
  const double share = config.value("partial_rotary_factor", config.value("rotary_pct", 1.0));
  return static_cast<double>(head_size(config)) * share;
}

std::string config_text_of(const GgufFile& file) {
  const GgufArchitecture& architecture = architecture_of(file);
  OrderedJson config;
  config["architectures"] = {architecture.model_class};
  config["model_type"] = architecture.model_type;
  config["dtype"] = dtype_of(file);
  for (const auto& keys : architecture.keys)
    for (const GgufKeyRow& row : keys) add_key(file, row, config);
  if (const int64_t beyond = layers_beyond(file); beyond > 0)
    config["num_hidden_layers"] = config.value("num_hidden_layers", int64_t{0}) - beyond;
  const bool knows_keys = has_config_key(architecture, "num_key_value_heads");
  if (knows_keys && !config.contains("num_key_value_heads") && config.contains("num_attention_heads"))
    config["num_key_value_heads"] = config["num_attention_heads"];
  add_norm(file, architecture, config);
  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2)
    throw CheckpointError(cat(file.path().string(), ": expected a matrix token_embd.weight, got ",
                              embedding == nullptr ? "none" : "another shape", ": the file holds no whole model"));
  config["vocab_size"] = embedding->shape.front();
  config["tie_word_embeddings"] = file.find_tensor("output.weight") == nullptr;
  add_tokens(file, config);
  add_rope(file, config);
  if (architecture.complete != nullptr) architecture.complete(file, config);
  refuse_unread_numbers(file, architecture, config);
  if (std::ranges::any_of(file.tensors(), [](const GgufTensor& tensor) { return !tensor.type->is_plain(); }))
    config["quantization_config"] = {{"quant_method", "gguf"}};
  return config.dump(2) + "\n";
}

}  // namespace lancet
