#include "scheme_settings.h"

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"

namespace lancet {

OrderedJson parse_config(std::string_view text, std::string_view where) {
  std::string problem = "another kind of value";
  try {
    if (OrderedJson json = parse_ordered_json(text); json.is_object()) return json;
  } catch (const JsonProblem& found) {
    problem = found.what();
  }
  throw CheckpointError(
      cat(where, ": expected a JSON object, got ", problem, ": the file is damaged, download it again"));
}

std::vector<SettingsPlace> find_settings(const OrderedJson& config) {
  std::vector<SettingsPlace> found;
  const auto look = [&](const OrderedJson& object, const std::string& prefix, const OrderedJson::json_pointer& place) {
    for (const char* key : {"quantization_config", "compression_config"}) {
      const auto at = object.find(key);
      if (at != object.end() && !at->is_null() && *at != OrderedJson(false))
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
