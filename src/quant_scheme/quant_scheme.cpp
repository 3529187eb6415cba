#include "lancet/quant_scheme/quant_scheme.h"

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "methods.h"

namespace lancet {
namespace {

struct Method {
  std::string_view name;
  ModuleRules (*read)(SchemeKeys&);
};
constexpr Method kMethods[] = {
    {"bitsandbytes", read_bitsandbytes},
    {"gptq", read_gptq},
    {"awq", read_awq},
    {"fp8", read_float8},
    {"fbgemm_fp8", read_fbgemm_float8},
    {"compressed-tensors", read_compressed_tensors},
};

/// Behind a module's name.
constexpr std::string_view kAside[] = {
    ".input_scale",
    ".input_zero_point",
    ".input_global_scale",
    ".output_scale",
    ".output_zero_point",
    ".activation_scale",
    ".input_scale_ub",
    ".k_scale",
    ".v_scale",
    ".q_scale",
    ".k_zero_point",
    ".v_zero_point",
    ".k_proj.output_scale",
    ".v_proj.output_scale",
};

const Method* find_method(std::string_view name) {
  const std::string known = name == "compressed_tensors" ? "compressed-tensors" : std::string(name);
  const auto* at =
      std::find_if(std::begin(kMethods), std::end(kMethods), [&](const Method& m) { return m.name == known; });
  return at == std::end(kMethods) ? nullptr : at;
}

std::string known_methods() {
  std::vector<std::string> names;
  for (const Method& method : kMethods) names.emplace_back(method.name);
  return join(names);
}

OrderedJson parse_config(std::string_view text, std::string_view where) {
  std::string problem = "another kind of value";
  JsonWatch watch(kUsualJsonDepth, [](const std::string& key, int64_t) { throw JsonProblem(repeated_key_text(key)); });
  try {
    if (OrderedJson json = OrderedJson::parse(text.begin(), text.end(), std::ref(watch)); json.is_object()) return json;
  } catch (const OrderedJson::exception& error) {
    problem = invalid_json_text(error.what());
  } catch (const JsonProblem& found) {
    problem = found.what();
  }
  throw CheckpointError(
      cat(where, ": expected a JSON object, got ", problem, ": the file is damaged, download it again"));
}

struct Settings {
  std::string key = {};
  const OrderedJson* value = nullptr;
};

/// Where the configuration has them: also in the part of a multi-modal one that describes the language model.
std::vector<Settings> find_settings(const OrderedJson& config) {
  std::vector<Settings> found;
  const auto look = [&](const OrderedJson& object, const std::string& prefix) {
    for (const char* key : {"quantization_config", "compression_config"}) {
      const auto at = object.find(key);
      if (at != object.end() && !at->is_null() && *at != OrderedJson(false)) found.push_back({prefix + key, &*at});
    }
  };
  look(config, "");
  if (const auto nested = config.find("text_config"); nested != config.end() && nested->is_object())
    look(*nested, "text_config.");
  return found;
}

std::string method_name(SchemeKeys& keys) {
  const std::string name = keys.text("quant_method", "");
  // Files from before there was such a key.
  return name.empty() && (keys.has("load_in_8bit") || keys.has("load_in_4bit")) ? "bitsandbytes" : name;
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
  const std::vector<Settings> found = find_settings(config);
  if (found.empty()) return std::nullopt;
  SchemeProblems problems{.ignored_keys = ignored_keys};
  const Settings& settings = found.front();
  if (found.size() > 1)
    problems.found.push_back(cat(found[1].key, ": expected one description, got ", settings.key, " too"));
  if (!settings.value->is_object())
    throw CheckpointError(cat(where, ": ", settings.key, ": expected an object, got ", json_text(*settings.value)));
  SchemeKeys keys(*settings.value, settings.key + ".", problems);
  const std::string name = method_name(keys);
  const Method* method = find_method(name);
  std::shared_ptr<ModuleRules> rules;
  if (method == nullptr) {
    problems.found.push_back(cat(settings.key, ".quant_method: '", printable(name),
                                 "' is not read: this version reads ", known_methods(),
                                 ". Take the model in one of these, or the one that is not quantised"));
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

bool QuantScheme::leaves_aside(std::string_view tensor) const {
  return std::any_of(std::begin(kAside), std::end(kAside), [&](std::string_view end) { return tensor.ends_with(end); });
}

}  // namespace lancet
