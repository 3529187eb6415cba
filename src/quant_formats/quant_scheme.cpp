#include "lancet/quant_formats/quant_scheme.h"

#include <algorithm>

#include "lancet/checkpoint/module_name.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "scheme_settings.h"

namespace lancet {
namespace {

/// Ends of names that follow the name of a quantised module.
constexpr std::string_view kAside[] = {
    ".input_scale",  ".input_zero_point",  ".input_global_scale", ".input_scale_ub",
    ".output_scale", ".output_zero_point", ".activation_scale",
};
/// Ends of names of scales for cached keys and values, which follow the name of their attention.
constexpr std::string_view kAsideOfCache[] = {
    ".k_scale",
    ".v_scale",
    ".q_scale",
    ".k_zero_point",
    ".v_zero_point",
    ".k_proj.output_scale",
    ".v_proj.output_scale",
};

/// Methods that lancet knows but does not read, with their programs.
struct OtherMethod {
  std::string_view name, program;
};
constexpr OtherMethod kOtherMethods[] = {{"exl2", "ExLlamaV2"},
                                         {"exl3", "ExLlamaV3"},
                                         {"hqq", "HQQ"},
                                         {"quanto", "Quanto"},
                                         {"torchao", "torchao"},
                                         {"aqlm", "AQLM"},
                                         {"vptq", "VPTQ"},
                                         {"spqr", "SpQR"},
                                         {"higgs", "HIGGS"},
                                         {"eetq", "EETQ"},
                                         {"bitnet", "BitNet"},
                                         {"quark", "AMD Quark"},
                                         {"auto-round", "AutoRound"},
                                         {"modelopt", "NVIDIA ModelOpt"},
                                         {"fp_quant", "FP-Quant"},
                                         {"sinq", "SINQ"},
                                         {"quip", "QuIP#"},
                                         {"metal", "MLX"}};

/// Returns why lancet does not read a method.
std::string unread_method(const std::string& name, SchemeKeys& keys) {
  const auto* other = std::ranges::find(kOtherMethods, name, &OtherMethod::name);
  const bool is_mlx = name.empty() && keys.has("group_size") && keys.has("bits");
  const std::string_view program = other != std::end(kOtherMethods) ? other->program : is_mlx ? "MLX" : "";
  return cat("'", printable(name), "' is not read",
             program.empty() ? "" : cat(" (weights that ", program, " has packed)"), ": this version reads ",
             known_methods(), ". Take the model in one of these, or the one that is not quantised");
}

template <size_t kCount>
bool has_end(std::string_view name, const std::string_view (&ends)[kCount]) {
  return std::any_of(std::begin(ends), std::end(ends), [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace

void add_rules(SchemeKeys& keys, std::string_view key, RuleText kind, std::optional<MatrixCode> code,
               ModuleRules& rules) {
  for (const std::string& text : keys.texts(key)) {
    try {
      rules.rules.emplace_back(kind, text, code);
    } catch (const CheckpointError& error) {
      keys.refuse(key, error.what());
    }
  }
}

std::optional<QuantScheme> QuantScheme::parse(std::string_view config_json, std::span<const std::string> ignored_keys,
                                              std::string_view where) {
  const OrderedJson config = parse_config(config_json, where);
  const std::vector<SettingsPlace> found = find_settings(config);
  if (found.empty()) return std::nullopt;
  SchemeProblems problems{.ignored_keys = ignored_keys};
  const std::string& key = found.front().key;
  const OrderedJson& settings = config.at(found.front().pointer);
  if (found.size() > 1) problems.found.push_back(cat(found[1].key, ": expected one description, got ", key, " too"));
  if (!settings.is_object())
    throw CheckpointError(cat(where, ": ", key, ": expected an object, got ", json_text(settings)));
  SchemeKeys keys(settings, key + ".", problems);
  const std::string name = method_name(keys);
  const QuantMethod* method = find_method(name);
  std::shared_ptr<ModuleRules> rules;
  if (method == nullptr) {
    problems.found.push_back(cat(key, ".quant_method: ", unread_method(name, keys)));
  } else {
    rules = std::make_shared<ModuleRules>(method->read(keys));
    keys.finish();
  }
  if (!problems.found.empty()) throw CheckpointError(cat(where, ":\n  ", join(problems.found, "\n  ")));
  return QuantScheme(std::string(method->name), std::move(rules));
}

std::optional<MatrixCode> QuantScheme::code_of(std::string_view module) const { return rules_->code_of(module); }

std::optional<MatrixCode> QuantScheme::code_of_packed(std::string_view module) const {
  return rules_->code_of_packed(module);
}

std::string QuantScheme::unit_of(std::string_view tensor) const {
  const std::string_view module = module_of(tensor);
  const QuantMethod* method = find_method(method_);
  return std::string(method->unit == nullptr ? module : method->unit(module));
}

bool QuantScheme::leaves_aside(std::string_view tensor) const {
  return has_end(tensor, kAside) || has_end(tensor, kAsideOfCache);
}

std::vector<std::string> QuantScheme::aside_names(std::string_view module) const {
  std::vector<std::string> names;
  for (const std::string_view end : kAside)
    if (std::string name = cat(module, end); !has_end(name, kAsideOfCache)) names.push_back(std::move(name));
  return names;
}

OrderedJson parse_config(std::string_view text, std::string_view where) {
  try {
    return parse_ordered_object(text);
  } catch (const JsonProblem& problem) {
    throw CheckpointError(
        cat(where, ": expected a JSON object, got ", problem.what(), ": the file is damaged, download it again"));
  }
}

std::vector<SettingsPlace> find_settings(const OrderedJson& config) {
  std::vector<SettingsPlace> found;
  const auto look = [&](const OrderedJson& object, const std::string& prefix, const OrderedJson::json_pointer& place) {
    for (const char* key : {"quantization_config", "compression_config"}) {
      const auto at = object.find(key);
      if (at != object.end() && !at->is_null() && *at != OrderedJson(false) && *at != OrderedJson::object())
        found.push_back({prefix + key, place / key});
    }
  };
  const OrderedJson::json_pointer root;
  look(config, "", root);
  if (const auto nested = config.find("text_config"); nested != config.end() && nested->is_object())
    look(*nested, "text_config.", root / "text_config");
  return found;
}

std::string method_name(SchemeKeys& keys) {
  std::string name = keys.text("quant_method", "");
  if (!name.empty()) return name;
  for (const QuantFormat* format : kQuantFormats)
    for (const QuantMethod& method : format->methods)
      if (std::ranges::any_of(method.implied_by, [&](std::string_view key) { return keys.has(key); }))
        return std::string(method.name);
  return name;
}

const QuantMethod* find_method(std::string_view name) {
  for (const QuantFormat* format : kQuantFormats)
    for (const QuantMethod& method : format->methods)
      if (method.name == name || (!name.empty() && method.other_name == name)) return &method;
  return nullptr;
}

std::string known_methods() {
  std::vector<std::string> names;
  for (const QuantFormat* format : kQuantFormats)
    for (const QuantMethod& method : format->methods) names.emplace_back(method.name);
  return join(names);
}

}  // namespace lancet
