#include "scheme_settings.h"

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr Method kMethods[] = {
    {"bitsandbytes", read_bitsandbytes, leave_out_bitsandbytes},
    {"gptq", read_gptq, leave_out_gptq},
    {"awq", read_awq, leave_out_awq},
    {"fp8", read_float8, leave_out_float8},
    {"fbgemm_fp8", read_fbgemm_float8, leave_out_fbgemm_float8},
    {"compressed-tensors", read_compressed_tensors, leave_out_compressed_tensors},
};

}  // namespace

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
  const std::string name = keys.text("quant_method", "");
  // Files from before there was such a key.
  return name.empty() && (keys.has("load_in_8bit") || keys.has("load_in_4bit")) ? "bitsandbytes" : name;
}

const Method* find_method(std::string_view name) {
  const std::string known = name == "compressed_tensors" ? "compressed-tensors" : std::string(name);
  const auto at = std::find_if(std::begin(kMethods), std::end(kMethods),
                               [&](const Method& method) { return method.name == known; });
  return at == std::end(kMethods) ? nullptr : at;
}

std::string known_methods() {
  std::vector<std::string> names;
  for (const Method& method : kMethods) names.emplace_back(method.name);
  return join(names);
}

}  // namespace lancet
