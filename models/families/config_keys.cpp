// transformers_keys.json has the keys that transformers' classes read. tools/config_keys.py makes it.
#include "config_keys.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "lancet/core/built_in_file.h"
#include "lancet/core/strings.h"

namespace lancet {

std::span<const BuiltInFile> transformers_keys();

namespace {

using Json = nlohmann::json;

template <typename List>
bool contains(const List& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

const Json& table() {
  static const Json kTable = Json::parse(transformers_keys().front().text);
  return kTable;
}

/// Ends of names of keys that only concern the training of a model.
constexpr std::string_view kTraining[] = {"dropout", "_pdrop", "dropout_prob", "layerdrop", "initializer_range"};
/// Parts of names of keys that are factors, or belong to them: for these, 0 is a meaningful value.
constexpr std::string_view kFactors[] = {"multiplier", "scale", "scaling", "scalar", "factor",
                                         "theta",      "eps",   "alpha",   "beta",   "slope"};

bool is_of_training(std::string_view key) {
  return std::ranges::any_of(kTraining, [&](std::string_view end) { return key.ends_with(end); });
}

bool is_factor(std::string_view key) {
  return std::ranges::any_of(kFactors, [&](std::string_view part) { return key.find(part) != std::string_view::npos; });
}

bool is_read_by_any_family(std::string_view key) {
  return contains(refused_keys(), key) ||
         std::ranges::any_of(families(), [&](const Family* family) { return contains(family->understood_keys, key); });
}

/// Returns the value that transformers uses if the key is missing; nullopt if it does not read the key.
std::optional<Json> default_of(const std::string& model_type, const std::string& key) {
  const auto& types = table()["types"];
  if (const auto type = types.find(model_type); type != types.end())
    if (const auto at = type->find(key); at != type->end()) return *at;
  const auto& shared = table()["shared"];
  if (const auto at = shared.find(key); at != shared.end()) return *at;
  return std::nullopt;
}

/// Whether the key repeats the value of another key that is present.
bool says_it_again(const KeysOfClass& keys, const std::string& key, const Json& value) {
  const auto& aliases = table()["aliases"];
  const auto of_type = aliases.find(keys.model_type);
  if (of_type == aliases.end()) return false;
  const auto name = of_type->find(key);
  if (name == of_type->end()) return false;
  const auto other = keys.keys.find(name->get<std::string>());
  return other != keys.keys.end() && *other == value;
}

std::string unsupported(const std::string& key, const Json& value, const std::string& usual) {
  return cat(key, ": expected ", usual, " or no such key, got ", value.dump(),
             ": it changes the computation and is not supported");
}

constexpr const char* kVouch = ": if it does not change the computation, name it in ignore_config_keys";

/// What happens to a key that no reader of the family asks for.
struct Verdict {
  std::string refusal = {};  ///< empty: the key is not refused
  bool is_unread = false;    ///< the key has a value, and transformers ignores it
};

Verdict judge(const KeysOfClass& keys, const std::string& key, const Json& value) {
  const bool is_nothing = says_nothing(key, value);
  if (says_it_again(keys, key, value)) return {};
  if (const std::optional<Json> usual = default_of(keys.model_type, key)) {
    if (value == *usual || (is_nothing && says_nothing(key, *usual))) return {};
    return {unsupported(key, value, says_nothing(key, *usual) ? "null, false" : usual->dump())};
  }
  if (is_nothing) return {};
  if (contains(refused_keys(), key)) return {unsupported(key, value, "null, false")};
  if (is_read_by_any_family(key))
    return {cat(key, ": expected null, false or no such key, got ", value.dump(),
                ": models of other kinds compute with it, and lancet not in this one", kVouch)};
  if (!table()["types"].contains(keys.model_type)) return {cat(key, ": unknown key", kVouch)};
  if (keys.has_own_code)
    return {cat(key, ": unknown key, which code that config.json names (auto_map) may read", kVouch)};
  return {"", true};
}

/// Refuses MLX's own description of its packed weights.
std::string refusal_of_mlx(const Json& value) {
  const auto number = [&](const char* key) {
    return value.is_object() && value.contains(key) ? value[key].dump() : "some";
  };
  return cat("quantization: MLX has packed the weights (", number("bits"), " bits in groups of ", number("group_size"),
             "), which lancet does not read: take the model that was converted to MLX, or unpack this one where MLX "
             "runs: mlx_lm.convert --hf-path FOLDER --mlx-path OUT --dequantize");
}

}  // namespace

bool ties_above(const std::string& model_type) { return contains(table()["whole"], model_type); }

bool is_known(const Family& family, std::string_view key) {
  return contains(common_understood_keys(), key) || contains(common_harmless_keys(), key) ||
         contains(family.understood_keys, key) || contains(family.harmless_keys, key) || is_of_training(key) ||
         contains(table()["base"], key);
}

bool says_nothing(std::string_view key, const Json& value) {
  if (value.is_null() || value == Json(false) || value == Json("")) return true;
  if (value.is_structured() && value.empty()) return true;
  if (value.is_number()) return value == 0 && !is_factor(key);
  return key == "layer_types" && value.is_array() &&
         std::ranges::all_of(value, [](const Json& type) { return type == "full_attention"; });
}

void check_keys(const KeysOfClass& keys, const Family& family, std::span<const std::string> ignored,
                KeyFindings& findings) {
  for (const auto& [key, value] : keys.keys.items()) {
    if (key == keys.apart || is_known(family, key) || contains(ignored, key)) continue;
    if (key == "quantization" && !says_nothing(key, value)) {
      findings.problems.push_back(refusal_of_mlx(value));
      continue;
    }
    Verdict verdict = judge(keys, key, value);
    if (!verdict.refusal.empty()) findings.problems.push_back(std::move(verdict.refusal));
    if (verdict.is_unread) findings.unread.push_back(key);
  }
}

}  // namespace lancet
