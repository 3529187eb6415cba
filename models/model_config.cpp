#include "lancet/models/model_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

/// Reads keys of one JSON object and collects what is wrong with them.
class KeyReader {
 public:
  KeyReader(const Json& object, std::string prefix, std::vector<std::string>& problems)
      : object_(object), prefix_(std::move(prefix)), problems_(problems) {}

  /// Absent, null: no value.
  const Json* find(std::string_view key) const {
    const auto at = object_.find(key);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }

  int64_t positive(std::string_view key, std::optional<int64_t> fallback = {}) {
    const Json* value = find(key);
    if (value == nullptr && fallback) return *fallback;
    if (value != nullptr && value->is_number_integer() && value->get<int64_t>() > 0) return value->get<int64_t>();
    problem(key, "a positive integer", value);
    return 1;
  }

  double number(std::string_view key, std::optional<double> fallback = {}) {
    const Json* value = find(key);
    if (value == nullptr && fallback) return *fallback;
    if (value != nullptr && value->is_number()) return value->get<double>();
    problem(key, "a number", value);
    return 1.0;
  }

  bool flag(std::string_view key, bool fallback) {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (value->is_boolean()) return value->get<bool>();
    problem(key, "true or false", value);
    return fallback;
  }

  std::string text(std::string_view key, const std::string& fallback) {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (value->is_string()) return value->get<std::string>();
    problem(key, "a string", value);
    return fallback;
  }

  void problem(std::string_view key, std::string_view expected, const Json* got) {
    problems_.push_back(cat(prefix_, key, ": expected ", expected, ", got ", got == nullptr ? "nothing" : got->dump()));
  }

 private:
  const Json& object_;
  std::string prefix_;
  std::vector<std::string>& problems_;
};

bool contains(const std::vector<std::string_view>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

const Family* find_family(const Json& json, KeyReader& keys, std::vector<std::string>& problems) {
  std::string architecture;
  if (const Json* list = keys.find("architectures");
      list != nullptr && list->is_array() && list->size() == 1 && (*list)[0].is_string())
    architecture = (*list)[0].get<std::string>();
  const std::string model_type = keys.text("model_type", "");
  std::vector<std::string> known;
  for (const Family& family : families()) {
    if (architecture == family.architecture || (!json.contains("architectures") && model_type == family.model_type))
      return &family;
    known.emplace_back(family.architecture);
  }
  problems.push_back(cat("architectures: unknown family '", architecture.empty() ? model_type : architecture,
                         "': this version knows ", join(known)));
  return nullptr;
}

void check_keys(const Json& json, const Family& family, std::span<const std::string> ignored,
                std::vector<std::string>& problems) {
  for (const auto& [key, value] : json.items()) {
    if (contains(family.understood_keys, key) || contains(family.harmless_keys, key)) continue;
    if (std::find(ignored.begin(), ignored.end(), key) != ignored.end()) continue;
    const bool absent = value.is_null() || value == Json(false);
    if (contains(family.refused_keys, key)) {
      if (absent) continue;
      const bool quantised = key == "quantization_config" || key == "compression_config";
      problems.push_back(
          quantised
              ? cat(key, ": quantised checkpoints (GPTQ, AWQ, bitsandbytes) cannot be edited: load the model in bf16 ",
                    "with transformers (dequantize()) or take the original, and save it with save_pretrained")
              : cat(key, ": changes the computation and is not supported"));
    } else {
      problems.push_back(
          cat(key, ": unknown key: if it does not change the computation, name it in ignore_config_keys"));
    }
  }
}

void read_rope_scaling(const Json& object, const std::string& prefix, RopeConfig& rope,
                       std::vector<std::string>& problems) {
  KeyReader keys(object, prefix, problems);
  const std::string type = keys.text(keys.find("rope_type") != nullptr ? "rope_type" : "type", "default");
  if (type == "default") return;
  rope.factor = keys.number("factor");
  if (type == "linear") {
    rope.scaling = RopeConfig::Scaling::kLinear;
  } else if (type == "llama3") {
    rope.scaling = RopeConfig::Scaling::kLlama3;
    rope.low_freq_factor = keys.number("low_freq_factor");
    rope.high_freq_factor = keys.number("high_freq_factor");
    rope.original_max_positions = keys.positive("original_max_position_embeddings");
  } else {
    problems.push_back(cat(prefix, "rope_type: '", type, "': expected default, linear or llama3"));
  }
}

/// transformers 4: rope_theta beside rope_scaling; transformers 5: both inside rope_parameters.
RopeConfig read_rope(KeyReader& keys, std::vector<std::string>& problems) {
  RopeConfig rope;
  const Json* parameters = keys.find("rope_parameters");
  const Json* scaling = keys.find("rope_scaling");
  for (const auto& [object, name] : {std::pair{parameters, "rope_parameters"}, std::pair{scaling, "rope_scaling"}})
    if (object != nullptr && !object->is_object()) keys.problem(name, "an object", object);
  if (parameters != nullptr && parameters->is_object()) {
    rope.theta =
        KeyReader(*parameters, "rope_parameters.", problems).number("rope_theta", keys.number("rope_theta", 10000.0));
    read_rope_scaling(*parameters, "rope_parameters.", rope, problems);
    return rope;
  }
  rope.theta = keys.number("rope_theta", 10000.0);
  if (scaling != nullptr && scaling->is_object()) read_rope_scaling(*scaling, "rope_scaling.", rope, problems);
  return rope;
}

DType read_dtype(KeyReader& keys, std::vector<std::string>& problems) {
  const std::string name = keys.text("dtype", keys.text("torch_dtype", "float32"));
  if (name == "float32") return DType::kF32;
  if (name == "bfloat16") return DType::kBF16;
  if (name == "float16") return DType::kF16;
  if (name == "float64") return DType::kF64;
  problems.push_back(cat("dtype: '", name, "': expected float32, bfloat16, float16 or float64"));
  return DType::kF32;
}

std::vector<int64_t> read_ids(const Json& json, std::string_view key) {
  const auto at = json.find(key);
  if (at == json.end()) return {};
  if (at->is_number_integer()) return {at->get<int64_t>()};
  std::vector<int64_t> ids;
  if (at->is_array())
    for (const Json& id : *at)
      if (id.is_number_integer()) ids.push_back(id.get<int64_t>());
  return ids;
}

Json parse_object(std::string_view text, std::string_view where) {
  std::string problem = "another kind of value";
  try {
    if (Json json = parse_strict_json(text); json.is_object()) return json;
  } catch (const JsonProblem& found) {
    problem = found.what();
  }
  throw CheckpointError(
      cat(where, ": expected a JSON object, got ", problem, ": the file is damaged, download it again"));
}

void check_shapes(const ModelConfig& config, std::vector<std::string>& problems) {
  if (config.n_heads % config.n_kv_heads != 0)
    problems.push_back(
        cat("num_key_value_heads: ", config.n_kv_heads, " does not divide num_attention_heads ", config.n_heads));
  if (config.head_dim % 2 != 0) problems.push_back(cat("head_dim: ", config.head_dim, ": expected an even number"));
}

}  // namespace

ModelConfig parse_model_config(std::string_view config_json, std::string_view generation_config_json,
                               std::span<const std::string> ignored_keys, std::string_view where) {
  const Json json = parse_object(config_json, where);
  std::vector<std::string> problems;
  KeyReader keys(json, "", problems);
  ModelConfig config;
  config.family = find_family(json, keys, problems);
  if (config.family != nullptr) {
    check_keys(json, *config.family, ignored_keys, problems);
    config.dtype = read_dtype(keys, problems);
    config.vocab_size = keys.positive("vocab_size");
    config.d_model = keys.positive("hidden_size");
    config.d_ffn = keys.positive("intermediate_size");
    config.n_layers = keys.positive("num_hidden_layers");
    config.n_heads = keys.positive("num_attention_heads");
    config.n_kv_heads = keys.positive("num_key_value_heads", config.n_heads);
    config.head_dim = keys.positive("head_dim", std::max<int64_t>(config.d_model / config.n_heads, 1));
    config.max_positions = keys.positive("max_position_embeddings", 2048);
    config.rms_norm_eps = keys.number("rms_norm_eps", 1e-6);
    config.rope = read_rope(keys, problems);
    config.tied_embeddings = keys.flag("tie_word_embeddings", false);
    config.attention_bias = keys.flag("attention_bias", false);
    config.mlp_bias = keys.flag("mlp_bias", false);
    if (const std::string activation = keys.text("hidden_act", "silu"); activation != "silu")
      problems.push_back(cat("hidden_act: '", activation, "': expected silu"));
    check_shapes(config, problems);
  }
  if (!problems.empty()) throw CheckpointError(cat(where, ":\n  ", join(problems, "\n  ")));
  if (!generation_config_json.empty())
    config.eos_ids =
        read_ids(parse_object(generation_config_json, cat(where, " (generation_config.json)")), "eos_token_id");
  if (config.eos_ids.empty()) config.eos_ids = read_ids(json, "eos_token_id");
  return config;
}

ModelConfig load_model_config(const Checkpoint& checkpoint, std::span<const std::string> ignored_keys) {
  const std::filesystem::path generation = checkpoint.folder() / "generation_config.json";
  const std::string generation_text =
      std::filesystem::exists(generation) ? read_text_file(generation, "generation_config.json") : std::string();
  return parse_model_config(checkpoint.config_text(), generation_text, ignored_keys,
                            (checkpoint.folder() / "config.json").string());
}

}  // namespace lancet
