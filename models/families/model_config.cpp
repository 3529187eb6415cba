#include "lancet/models/model_config.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config_keys.h"
#include "config_reader.h"
#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/models/unread_keys.h"
#include "weight_rows.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

bool has_name(const NameList& names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

std::string lowered(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

/// Returns the keys of a configuration that have a value and that a family does not know.
std::vector<std::string> unknown_keys(const Json& json, const Family& family) {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : json.items())
    if (!is_known(family, key) && !says_nothing(key, value)) unknown.push_back(key);
  return unknown;
}

/// Returns the family that knows most of a configuration's keys, and the keys that it does not know.
std::string nearest_family(const Json& json) {
  const Family* nearest = nullptr;
  std::vector<std::string> fewest;
  int64_t most_shared = -std::ssize(json);
  for (const Family* family : families()) {
    std::vector<std::string> unknown = unknown_keys(json, *family);
    const int64_t shared = std::count_if(family->understood_keys.begin(), family->understood_keys.end(),
                                         [&](std::string_view key) { return json.contains(key); }) -
                           std::ssize(unknown);
    if (nearest != nullptr && shared <= most_shared) continue;
    nearest = family;
    fewest = std::move(unknown);
    most_shared = shared;
  }
  constexpr size_t kShown = 8;
  if (fewest.size() > kShown) {
    const size_t more = fewest.size() - kShown;
    fewest.resize(kShown);
    fewest.push_back(cat("and ", more, " more"));
  }
  return cat(most_shared > 0 ? "the nearest is " : "none is near; the nearest is ", nearest->name, " (",
             nearest->architectures.front(), "), ",
             fewest.empty() ? std::string("whose config.json has the same keys, but which may compute otherwise")
                            : cat("whose config.json has no ", join(fewest)));
}

/// Says why a configuration of an unknown family is refused.
std::string unknown_family(const Json& json, const std::string& name, std::span<const std::string> known) {
  return cat("architectures: unknown family '", name, "': ", nearest_family(json), ". This version knows ",
             join(known));
}

/// Returns the text in config.json; `otherwise` if it is absent, or not a text.
std::string type_said_by(const Json& config, const std::string& otherwise) {
  const auto type = config.find("model_type");
  return type != config.end() && type->is_string() ? type->get<std::string>() : otherwise;
}

/// Returns the family that reads checkpoints of this model_type, or of one of these classes. Case does not matter.
const Family* family_of(const std::string& model_type, std::span<const std::string> architectures) {
  for (const Family* family : families())
    if (has_name(family->model_types, model_type)) return family;
  for (const Family* family : families())
    for (const std::string_view known : family->architectures)
      if (std::ranges::any_of(architectures, [&](const std::string& name) { return lowered(name) == lowered(known); }))
        return family;
  return nullptr;
}

bool has_own_code(const Json& json) { return !says_nothing("auto_map", json.value("auto_map", Json())); }

/// Finds the family by model_type, as transformers does, or by architectures if that says nothing. If the file names
/// code for a class that no family has, that class is meant.
const Family* find_family(const Json& json, ConfigReader& keys, std::vector<std::string>& problems) {
  const std::vector<std::string> architectures = keys.texts("architectures");
  const std::string model_type = keys.text("model_type", "");
  const Family* by_class = family_of("", architectures);
  const Family* family = family_of(model_type, architectures);
  if (family != nullptr && (by_class != nullptr || architectures.empty() || !has_own_code(json))) return family;
  std::vector<std::string> known;
  for (const Family* each : families()) known.emplace_back(each->architectures.front());
  problems.push_back(unknown_family(json, architectures.empty() ? model_type : architectures.front(), known));
  return nullptr;
}

/// Checks the keys of the language model's configuration, and those around it.
KeyFindings find_odd_keys(const Json& json, const Family& family, std::span<const std::string> ignored) {
  KeyFindings findings;
  const bool own_code = has_own_code(json);
  const std::string usual(*family.model_types.begin());
  const auto nested = family.nested_under.empty() ? json.end() : json.find(family.nested_under);
  const bool is_nested = nested != json.end() && nested->is_object();
  if (is_nested) check_keys({*nested, type_said_by(*nested, usual), own_code}, family, ignored, findings);
  check_keys({json, type_said_by(json, usual), own_code, is_nested ? family.nested_under : std::string_view()}, family,
             ignored, findings);
  return findings;
}

/// Returns the keys that describe the language model. In a multi-modal model, those are the nested ones and the ones
/// around them.
Json model_keys(const Json& json, const Family& family) {
  const auto nested = family.nested_under.empty() ? json.end() : json.find(family.nested_under);
  if (nested == json.end() || !nested->is_object()) return json;
  Json keys = *nested;
  if (ties_above(type_said_by(json, ""))) keys.erase("tie_word_embeddings");
  for (const auto& [key, value] : json.items())
    if (key != family.nested_under && !keys.contains(key)) keys[key] = value;
  return keys;
}

constexpr std::string_view kOfTheFile = "auto";  // means the type of the checkpoint's first tensor

/// The names of types, as in torch.
DType read_dtype(ConfigReader& keys, std::vector<std::string>& problems) {
  std::string name = keys.text("dtype", keys.text("torch_dtype", "float32"));
  constexpr std::string_view kModule = "torch.";
  if (name.starts_with(kModule)) name = name.substr(kModule.size());
  if (name == "float32" || name == "float" || name == kOfTheFile) return DType::kF32;
  if (name == "bfloat16") return DType::kBF16;
  if (name == "float16" || name == "half") return DType::kF16;
  if (name == "float64" || name == "double") return DType::kF64;
  problems.push_back(cat("dtype: '", name, "': expected float32, bfloat16, float16, float64 or auto"));
  return DType::kF32;
}

/// Returns the type of the first tensor with numbers of at least 16 bits, for a config.json that leaves the type to the
/// file.
std::optional<DType> dtype_of_file(const Checkpoint& checkpoint) {
  const Json json = Json::parse(checkpoint.config_text());
  const auto says_auto = [&](const char* key) { return json.value(key, Json()) == Json(kOfTheFile); };
  if (!says_auto("dtype") && (json.contains("dtype") || !says_auto("torch_dtype"))) return std::nullopt;
  for (const TensorFile& shard : checkpoint.shards())
    for (const TensorInfo& tensor : shard.tensors())
      for (const DType type : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64})
        if (tensor.dtype == type) return type;
  return std::nullopt;
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
  try {
    return parse_json_object(text);
  } catch (const JsonProblem& problem) {
    throw CheckpointError(
        cat(where, ": expected a JSON object, got ", problem.what(), ": the file is damaged, download it again"));
  }
}

constexpr int64_t kMostExpertsTogether = 200'000;  // in all layers together

void check_shapes(ConfigReader& keys, const ModelConfig& config) {
  if (config.n_heads % config.n_kv_heads != 0)
    keys.problem("num_key_value_heads", cat("a divisor of num_attention_heads, ", config.n_heads));
  if (std::ranges::count(config.experts.layers, true) * config.experts.count > kMostExpertsTogether)
    keys.problem(keys.has("num_experts") ? "num_experts" : "num_local_experts",
                 cat("at most ", kMostExpertsTogether, " experts of all layers together"));
  if (config.rope.dim % 2 == 0 && config.rope.dim <= config.head_dim) return;
  // the key that determines how many numbers of a head are rotated, by the family's name for it
  std::string_view source = config.rope.pairs == RopeConfig::Pairs::kAdjacent ? "rotary_dim" : "num_attention_heads";
  for (const std::string_view key : {"head_dim", "partial_rotary_factor", "rotary_pct", "rotary_dim"})
    if (keys.has(key)) source = key;
  keys.problem(source, cat("a rotary embedding of an even number of each head's ", config.head_dim, " numbers, not ",
                           config.rope.dim));
}

void read_fields(const Json& json, const Family& family, ModelConfig& config, std::vector<std::string>& problems) {
  ConfigReader keys(json, "", problems);
  config.dtype = read_dtype(keys, problems);
  config.tied_embeddings = keys.flag("tie_word_embeddings");
  family.read(keys, config);
  if (keys.has("vocab_size") || config.vocab_size == 0) config.vocab_size = keys.size("vocab_size", kMostWide);
  if (config.attention_scale == 0) config.attention_scale = 1.0 / std::sqrt(static_cast<double>(config.head_dim));
  check_shapes(keys, config);
}

/// Whether the name belongs to the row, whatever is before the layer's number. It may be that of one expert, of all
/// experts, or of any part of an expert's own matrix, which may be quantised.
bool is_named_by(const WeightRow& row, std::string_view name) {
  const std::string_view in_layer = row.name.substr(row.name.find("{}") + 2);
  if (has_all_experts(row.layout)) return name.ends_with(in_layer);
  const std::string_view to_expert = in_layer.substr(0, in_layer.find("{}"));
  const size_t at = name.find(to_expert), end = at + to_expert.size();
  return at != std::string_view::npos && end < name.size() && name[end] >= '0' && name[end] <= '9';
}

/// Whether the checkpoint has the experts in one tensor. If it has no expert with a name of the family, the usual form
/// is assumed.
bool has_joined_experts(const ModelConfig& config, const Checkpoint& checkpoint) {
  const std::vector<std::string> names = checkpoint.tensor_names();
  const auto has = [&](bool joined) {
    return std::ranges::any_of(config.family->weights, [&](const WeightRow& row) {
      return is_of_experts(row) && has_all_experts(row.layout) == joined &&
             std::ranges::any_of(names, [&](const std::string& name) { return is_named_by(row, name); });
    });
  };
  return has(true) || (config.experts.in_one_tensor && !has(false));
}

/// Whether keys and values of latent attention's heads have tensors of their own.
bool has_split_heads_of_latents(const Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint.tensor_names(), [](const std::string& name) {
    return name.find(".self_attn.k_b_proj.weight") != std::string::npos;
  });
}

/// Checks that each layer, and each expert if experts do not share tensors, has at least one tensor of its own.
/// Otherwise the table of weights would become as long as config.json says, although the checkpoint cannot have so many
/// weights.
void check_tensors(const ModelConfig& config, const Checkpoint& checkpoint, std::string_view where) {
  const int64_t tensors = std::ssize(checkpoint.tensor_names());
  const int64_t with_experts = std::ranges::count(config.experts.layers, true);
  const int64_t least =
      config.n_layers + (config.experts.in_one_tensor ? 0 : with_experts * (config.experts.count - 1));
  if (least <= tensors) return;
  throw CheckpointError(
      cat(where, ": expected no more layers than the checkpoint has tensors for, got ", config.n_layers, " layers",
          with_experts == 0 ? "" : cat(", ", with_experts, " of ", config.experts.count, " experts,"), " and ", tensors,
          " tensors (", checkpoint.folder().string(), "); download config.json and the weights again"));
}

}  // namespace

KeyShape ModelConfig::key_shape(int64_t layer) const {
  return has_experts(layer) ? KeyShape{experts.count, experts.d_ffn} : KeyShape{1, d_ffn};
}

std::vector<int64_t> ModelConfig::layers_with_mlp() const {
  std::vector<int64_t> layers;
  for (int64_t layer = 0; layer < n_layers; ++layer)
    if (has_mlp(layer)) layers.push_back(layer);
  return layers;
}

int64_t ModelConfig::widest_dense() const {
  const int64_t mlps = mlp_layers.empty() ? n_layers : std::ranges::count(mlp_layers, true);
  return std::ranges::count(experts.layers, true) < std::max<int64_t>(mlps, 1) ? d_ffn : 0;
}

KeyShape ModelConfig::largest_keys() const {
  const KeyShape routed{experts.count, experts.d_ffn};
  return routed.size() > widest_dense() ? routed : KeyShape{1, d_ffn};
}

int64_t ModelConfig::active_ffn() const { return std::max(widest_dense(), experts.chosen * experts.d_ffn); }

int64_t ModelConfig::least_tokens() const {
  return std::max(widest_dense(), experts.d_ffn * experts.count / std::max<int64_t>(experts.chosen, 1));
}

ModelConfig parse_model_config(std::string_view config_json, std::string_view generation_config_json,
                               std::span<const std::string> ignored_keys, std::string_view where) {
  const Json json = parse_object(config_json, where);
  std::vector<std::string> problems;
  ConfigReader keys(json, "", problems);
  ModelConfig config;
  config.family = find_family(json, keys, problems);
  if (config.family != nullptr) {
    const KeyFindings findings = find_odd_keys(json, *config.family, ignored_keys);
    problems.insert(problems.end(), findings.problems.begin(), findings.problems.end());
    read_fields(model_keys(json, *config.family), *config.family, config, problems);
  }
  if (!problems.empty()) throw CheckpointError(cat(where, ":\n  ", join(problems, "\n  ")));
  if (std::optional<QuantScheme> scheme = QuantScheme::parse(config_json, ignored_keys, where))
    config.quantised = std::make_shared<const QuantScheme>(std::move(*scheme));
  if (!generation_config_json.empty())
    config.eos_ids =
        read_ids(parse_object(generation_config_json, cat(where, " (generation_config.json)")), "eos_token_id");
  if (config.eos_ids.empty()) config.eos_ids = read_ids(json, "eos_token_id");
  return config;
}

std::vector<std::string> unread_keys(std::string_view config_json, std::span<const std::string> ignored_keys) {
  const Json json = parse_object(config_json, "config.json");
  std::vector<std::string> problems;
  ConfigReader keys(json, "", problems);
  const Family* family = find_family(json, keys, problems);
  return family == nullptr ? std::vector<std::string>() : find_odd_keys(json, *family, ignored_keys).unread;
}

void warn_of_unread_keys(const std::filesystem::path& file, std::span<const std::string> keys) {
  if (keys.empty()) return;
  log_warning(cat(file.string(), ": ", join(keys), ": transformers ignores ",
                  keys.size() == 1 ? "this key" : "these keys", ", and so does lancet"));
}

ModelConfig load_model_config(const Checkpoint& checkpoint, std::span<const std::string> ignored_keys) {
  const std::filesystem::path generation = checkpoint.folder() / "generation_config.json";
  const std::string generation_text =
      std::filesystem::exists(generation) ? read_text_file(generation, "generation_config.json") : std::string();
  const std::string where = (checkpoint.folder() / "config.json").string();
  ModelConfig config = parse_model_config(checkpoint.config_text(), generation_text, ignored_keys, where);
  config.dtype = dtype_of_file(checkpoint).value_or(config.dtype);
  config.experts.in_one_tensor = has_joined_experts(config, checkpoint);
  config.latent.is_split = config.latent.rank > 0 && has_split_heads_of_latents(checkpoint);
  check_tensors(config, checkpoint, where);
  return config;
}

}  // namespace lancet
