#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "adapter_factors.h"
#include "adapter_files.h"
#include "adapter_modules.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/deltas/adapter.h"
#include "lancet/models/tensor_io.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;
using AdapterJson = nlohmann::json;

/// Keys of adapter_config.json that do not change the meaning of the tensors: they say how the tensors were
/// initialised, trained and found.
constexpr std::string_view kHarmlessAdapterKeys[] = {"arrow_config_path", "auto_mapping",
                                                     "base_model_class",  "base_model_name_or_path",
                                                     "corda_config",      "ensure_weight_tying",
                                                     "eva_config",        "inference_mode",
                                                     "loftq_config",      "lora_dropout",
                                                     "lora_ga_config",    "megatron_core",
                                                     "parent_library",    "peft_version",
                                                     "qalora_group_size", "revision",
                                                     "runtime_config",    "task_type"};
constexpr std::string_view kReadAdapterKeys[] = {"bias",
                                                 "exclude_modules",
                                                 "fan_in_fan_out",
                                                 "init_lora_weights",
                                                 "layers_to_transform",
                                                 "lora_alpha",
                                                 "peft_type",
                                                 "r",
                                                 "target_modules",
                                                 "target_parameters",
                                                 "use_rslora"};
/// Initialisations that leave the model's own matrix as it is. With the others, PEFT subtracts the initial product from
/// the matrix whenever the adapter is loaded.
constexpr std::string_view kInitsBesideTheMatrix[] = {"eva", "gaussian", "orthogonal"};

bool is_silent(const AdapterJson& value) {
  return value.is_null() || value == AdapterJson(false) || (value.is_structured() && value.empty());
}

std::string shown(const AdapterJson& value) {
  return printable(value.dump(-1, ' ', false, AdapterJson::error_handler_t::replace));
}

/// The factor of the product.
struct Scale {
  int64_t rank = 0;
  double factor = 0;
};

AdapterJson read_adapter_json(const fs::path& path) {
  constexpr uint64_t kLargest = 16'000'000;
  const auto file = MappedFile::open(path);
  if (file->bytes().size() > kLargest) throw CheckpointError(cat(path.string(), ": expected at most 16 MB, got more"));
  try {
    return parse_json_object(file->text());
  } catch (const JsonProblem& problem) {
    throw CheckpointError(
        cat(path.string(), ": expected a JSON object, got ", problem.what(), "; take the adapter again"));
  }
}

/// Returns an empty text if the factors are simply added to the model's matrices.
std::string init_problem(const AdapterJson& init) {
  if (init.is_null() || init.is_boolean()) return "";
  if (init.is_string() && std::ranges::count(kInitsBesideTheMatrix, init.get<std::string>()) > 0) return "";
  const std::vector<std::string> kept(std::begin(kInitsBesideTheMatrix), std::end(kInitsBesideTheMatrix));
  return cat("init_lora_weights: expected true, false, ", join(kept), ", got ", shown(init),
             ", with which PEFT changes the model's own matrices too. Save the adapter again with "
             "save_pretrained(..., path_initial_model_for_weight_conversion=...)");
}

/// Whether `names` has the module, by PEFT's rule for a list of names: "down_proj" means every module whose name ends
/// so.
bool names_module(const AdapterJson& names, const std::string& module) {
  return std::ranges::any_of(names, [&](const AdapterJson& name) {
    if (!name.is_string()) return false;
    const auto& text = name.get_ref<const std::string&>();
    return module == text || module.ends_with("." + text);
  });
}

/// Returns an empty text if `target_parameters` names only experts' down projections. Several parameters of one module
/// would be nested in each other.
std::string parameter_problem(const AdapterJson& parameters) {
  const auto is_understood = [](const AdapterJson& name) {
    return name.is_string() && names_module(AdapterJson::array({kDownParameter}), name.get<std::string>());
  };
  if (is_silent(parameters) || (parameters.is_array() && std::ranges::all_of(parameters, is_understood))) return "";
  return cat("target_parameters: expected names of experts' ", kDownParameter, " alone, got ", shown(parameters));
}

/// Throws: ConfigError with everything in which the adapter is more than a pair for each module.
void check_understood(const fs::path& path, const AdapterJson& json) {
  std::vector<std::string> problems;
  if (json.value("peft_type", AdapterJson()) != AdapterJson("LORA"))
    problems.push_back(cat("peft_type: expected LORA, got ", shown(json.value("peft_type", AdapterJson()))));
  if (const AdapterJson bias = json.value("bias", AdapterJson("none")); bias != AdapterJson("none"))
    problems.push_back(cat("bias: expected none, got ", shown(bias)));
  if (const std::string problem = init_problem(json.value("init_lora_weights", AdapterJson())); !problem.empty())
    problems.push_back(problem);
  if (const std::string problem = parameter_problem(json.value("target_parameters", AdapterJson())); !problem.empty())
    problems.push_back(problem);
  for (const auto& [key, value] : json.items()) {
    const bool is_known = std::ranges::find(kHarmlessAdapterKeys, key) != std::end(kHarmlessAdapterKeys) ||
                          std::ranges::find(kReadAdapterKeys, key) != std::end(kReadAdapterKeys);
    if (!is_known && !is_silent(value)) problems.push_back(cat(printable(key), ": not understood, got ", shown(value)));
  }
  if (!problems.empty())
    throw ConfigError(cat(path.string(), ": the adapter is more than a pair of factors for each module, which is all ",
                          "that is read; merge it with PEFT:\n  ", join(problems, "\n  ")));
}

Scale read_scale(const fs::path& path, const AdapterJson& json) {
  const auto refuse = [&](const char* key, const char* expected) {
    const auto at = json.find(key);
    throw CheckpointError(cat(path.string(), ": ", key, ": expected ", expected, ", got ",
                              at == json.end() ? "nothing" : shown(*at), "; take the adapter again"));
  };
  constexpr int64_t kLargestRank = int64_t{1} << 20;
  const auto rank = json.find("r"), alpha = json.find("lora_alpha"), root = json.find("use_rslora");
  if (rank == json.end() || !rank->is_number_integer() || rank->get<int64_t>() < 1 || *rank > kLargestRank)
    refuse("r", "a whole number above 0");
  if (alpha == json.end() || !alpha->is_number() || !std::isfinite(alpha->get<double>()))
    refuse("lora_alpha", "a number");
  // null means false. PEFT decides about fan_in_fan_out from how the base stores the matrix, whatever the file says.
  for (const char* flag : {"use_rslora", "fan_in_fan_out"})
    if (const auto at = json.find(flag); at != json.end() && !at->is_null() && !at->is_boolean())
      refuse(flag, "true or false");
  const auto r = rank->get<int64_t>();
  const bool by_root = root != json.end() && *root == AdapterJson(true);
  const auto size = static_cast<double>(r);
  return {r, alpha->get<double>() / (by_root ? std::sqrt(size) : size)};
}

/// The two factors of a module in the file.
struct PairViews {
  std::optional<TensorView> a = {};
  std::optional<TensorView> b = {};
};
using PairsByModule = std::map<std::string, PairViews>;

/// Throws: ConfigError with all tensors that are not factors.
PairsByModule find_pairs(const SafetensorsReader& file) {
  PairsByModule pairs;
  std::vector<std::string> problems;
  for (const TensorInfo& info : file.tensors()) {
    const std::string_view name = info.name;
    const bool is_a = name.ends_with(kLoraA), is_b = name.ends_with(kLoraB);
    if (!name.starts_with(kAdapterPrefix) || (!is_a && !is_b)) {
      problems.push_back(printable(name));
      continue;
    }
    const size_t end = name.size() - (is_a ? kLoraA : kLoraB).size();
    const size_t begin = std::min(kAdapterPrefix.size(), end);
    PairViews& pair = pairs[std::string(name.substr(begin, end - begin))];
    (is_a ? pair.a : pair.b) = file.view(name);
  }
  if (!problems.empty())
    throw ConfigError(cat(file.path().string(), ": expected nothing but ", kAdapterPrefix, "MODULE", kLoraA, " and ",
                          kLoraB, ", got also what is not understood; merge the adapter with PEFT:\n  ",
                          join(problems, "\n  ")));
  return pairs;
}

/// Returns the number of the layer in a module's name: 3 for "model.layers.3.mlp.down_proj"; nullopt if the name has no
/// number, or several.
std::optional<int64_t> layer_of_module(const std::string& module) {
  std::optional<int64_t> layer;
  for (const std::string& part : split(module, '.')) {
    if (part.empty() || part.size() > 9 || part.find_first_not_of("0123456789") != std::string::npos) continue;
    if (layer) return std::nullopt;
    layer = std::stoll(part);
  }
  return layer;
}

/// Returns why PEFT, with these settings, would not use a module's factors; empty if it would.
std::string why_not_used(const AdapterJson& json, const std::string& module) {
  const AdapterJson parameters = json.value("target_parameters", AdapterJson());
  if (parameters.is_array() && names_module(parameters, cat(module, ".", kDownParameter))) return "";
  const AdapterJson targets = json.value("target_modules", AdapterJson());
  const AdapterJson excluded = json.value("exclude_modules", AdapterJson());
  const AdapterJson layers = json.value("layers_to_transform", AdapterJson());
  if (targets.is_array() && !names_module(targets, module)) return "target_modules leaves it out";
  if (targets.is_string() && module == "lm_head") return "target_modules: all-linear leaves it out";
  if (excluded.is_array() && names_module(excluded, module)) return "exclude_modules has it";
  if (is_silent(layers)) return "";
  const std::optional<int64_t> layer = layer_of_module(module);
  const bool is_listed = layers.is_array() ? std::ranges::count(layers, AdapterJson(layer.value_or(-1))) > 0
                                           : layers == AdapterJson(layer.value_or(-1));
  return is_listed ? "" : "layers_to_transform leaves it out";
}

/// Refuses settings without names: PEFT would then use its own list for each architecture, which changes between its
/// versions.
std::string target_problem(const AdapterJson& targets) {
  if (targets.is_array() || targets == AdapterJson("all-linear")) return "";
  return cat("target_modules: expected a list of names, or all-linear, got ",
             targets.is_null() ? "none, where PEFT takes names of its own for each architecture" : shown(targets));
}

/// Checks that the settings select exactly the modules that have factors, because PEFT follows the settings and not the
/// file. Throws: ConfigError.
void check_modules(const fs::path& path, const AdapterJson& json, const PairsByModule& pairs) {
  std::vector<std::string> problems;
  if (std::string problem = target_problem(json.value("target_modules", AdapterJson())); !problem.empty())
    problems.push_back(std::move(problem));
  const AdapterJson excluded = json.value("exclude_modules", AdapterJson());
  if (!is_silent(excluded) && !excluded.is_array())
    problems.push_back(cat("exclude_modules: expected a list of names, got ", shown(excluded)));
  // PEFT would read false as layer 0
  const AdapterJson layers = json.value("layers_to_transform", AdapterJson());
  if (!layers.is_null() && !layers.is_array() && !layers.is_number_integer())
    problems.push_back(cat("layers_to_transform: expected numbers of layers, got ", shown(layers)));
  if (problems.empty())
    for (const auto& [module, pair] : pairs)
      if (const std::string why = why_not_used(json, module); !why.empty())
        problems.push_back(cat("module ", printable(module), " has factors in the file, but ", why));
  if (!problems.empty())
    throw ConfigError(cat(path.string(), ": which modules the adapter changes is not clear; PEFT would leave factors ",
                          "unused without a word. Set target_modules to the names of those in ", kAdapterWeights,
                          ":\n  ", join(problems, "\n  ")));
}

bool is_factor_type(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16 || type == DType::kF64;
}

/// Reads the factors of a module, or of `experts` experts whose factors are stored together.
LowRankDelta read_pair(const std::string& where, const LinearModule& module, int64_t experts, const PairViews& pair,
                       const Scale& scale) {
  if (!pair.a || !pair.b)
    throw CheckpointError(cat(where, ": expected lora_A and lora_B, got one of them; take the adapter again"));
  const auto check = [&](const TensorView& view, const char* what, const std::vector<int64_t>& shape) {
    if (view.shape != shape || !is_factor_type(view.dtype))
      throw CheckpointError(cat(where, ": ", what, ": expected floats ", shape_text(shape), ", got ",
                                dtype_name(view.dtype), " ", shape_text(view.shape),
                                "; take the adapter of this model"));
  };
  check(*pair.a, "lora_A", {scale.rank * experts, module.n_inputs});
  check(*pair.b, "lora_B", {module.n_outputs, scale.rank * experts});
  const auto type = pair.a->dtype == DType::kF64 || pair.b->dtype == DType::kF64 ? at::kDouble : at::kFloat;
  const std::vector<TensorRead> reads{{*pair.b, Placement::host(), type}, {*pair.a, Placement::host(), type}};
  std::vector<Tensor> factors = read_tensors(reads, [](int64_t) {});
  if (!factors[0].isfinite().all().item<bool>() || !factors[1].isfinite().all().item<bool>())
    throw CheckpointError(where + ": expected finite numbers, got NaN or infinity; take the adapter again");
  if (scale.factor != 1) factors[0].mul_(scale.factor);
  return {factors[0], factors[1]};
}

/// Returns one expert's factors from the joint ones.
LowRankDelta factors_of(const LowRankDelta& all, int64_t expert, int64_t experts) {
  if (experts == 1) return all;
  return {all.left_OR.unflatten(1, {-1, experts}).select(2, expert).contiguous(),
          all.right_RI.unflatten(0, {experts, -1}).select(0, expert)};
}

}  // namespace

bool is_adapter(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kAdapterConfig, error) && !fs::exists(folder / "config.json", error);
}

std::vector<WeightChanges> read_adapter(const fs::path& folder, const ModelConfig& config) {
  const fs::path config_path = folder / kAdapterConfig, weights_path = folder / kAdapterWeights;
  const AdapterJson json = read_adapter_json(config_path);
  check_understood(config_path, json);
  const Scale scale = read_scale(config_path, json);
  constexpr const char* kPickled = "adapter_model.bin";
  if (!fs::exists(weights_path) && fs::exists(folder / kPickled))
    throw CheckpointError(
        cat(folder.string(), ": expected ", kAdapterWeights, ", got ", kPickled,
            ", as earlier versions of PEFT wrote it: it is a pickle, which lancet never runs. Save it "
            "again in Python (MODEL is what it was trained on):\n",
            "  from peft import PeftModel\n  from transformers import AutoModelForCausalLM\n",
            "  model = AutoModelForCausalLM.from_pretrained('MODEL')\n", "  PeftModel.from_pretrained(model, '",
            folder.string(), "').save_pretrained('OUT')"));
  const SafetensorsReader file = SafetensorsReader::open(weights_path);
  PairsByModule pairs = find_pairs(file);
  check_modules(config_path, json, pairs);
  const std::vector<LinearModule> modules = linear_modules(config);
  std::vector<ModulePair> read;
  const auto read_named = [&](const std::string& name, auto first, int64_t experts) {
    const auto pair = pairs.find(name);
    if (pair == pairs.end()) return;
    const LowRankDelta factors =
        read_pair(cat(weights_path.string(), ": module '", name, "'"), *first, experts, pair->second, scale);
    for (int64_t expert = 0; expert < experts; ++expert)
      read.push_back({&*(first + expert), factors_of(factors, expert, experts)});
    pairs.erase(pair);
  };
  for (auto module = modules.begin(); module != modules.end(); ++module) {
    if (module->stacked() > 1 && module->parts.front().expert == 0)
      read_named(module->name_in_file(), module, module->stacked());
    read_named(module->name, module, 1);
  }
  std::vector<std::string> unknown;
  for (const auto& [name, pair] : pairs) unknown.push_back(printable(name));
  if (!unknown.empty())
    throw ConfigError(cat(weights_path.string(),
                          ": expected modules of the model, a matrix each, got others; take the ",
                          "adapter of this model:\n  ", join(unknown, "\n  ")));
  return changes_of(config, read);
}

}  // namespace lancet
