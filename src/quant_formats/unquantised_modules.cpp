#include "lancet/quant_formats/unquantised_modules.h"

#include <algorithm>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "scheme_settings.h"

namespace lancet {
namespace {

constexpr std::string_view kConfigFile = "config.json";

struct Understood {
  const QuantMethod* method = nullptr;
  ModuleRules rules = {};
};

/// Reads settings without reporting unknown ones, because QuantScheme::parse() has reported them.
Understood understand(const OrderedJson& settings, const std::string& key) {
  if (!settings.is_object())
    throw CheckpointError(cat(kConfigFile, ": ", key, ": expected an object, got ", json_text(settings)));
  SchemeProblems problems;
  SchemeKeys keys(settings, key + ".", problems);
  const std::string name = method_name(keys);
  Understood found{.method = find_method(name)};
  if (found.method == nullptr)
    problems.found.push_back(cat(key, ".quant_method: '", printable(name), "' is none of ", known_methods()));
  else
    found.rules = found.method->read(keys);
  if (!problems.found.empty()) throw CheckpointError(cat(kConfigFile, ":\n  ", join(problems.found, "\n  ")));
  return found;
}

bool is_head(const std::string& module) { return std::ranges::find(kHeads, module) != std::end(kHeads); }

/// Checks the result with the rules themselves.
void check_promise(const ModuleRules& before, const ModuleRules& after, const ExcludedModules& excluded) {
  const auto refuse = [](const std::string& module, std::string_view expected) {
    throw CheckpointError(cat(kConfigFile, ": quantization_config: expected to say of '", printable(module), "' ",
                              expected, ", got settings that cannot: write an adapter, or edit the unquantised model"));
  };
  for (const std::string& module : excluded.modules)
    if (after.code_of(module)) refuse(module, "that it is not quantised");
  for (const std::string& other : excluded.others)
    if (!is_head(other) && after.code_of(other) != before.code_of(other)) refuse(other, "what it said");
}

}  // namespace

std::string with_unquantised(std::string_view config_json, std::span<const std::string> modules,
                             std::span<const std::string> others) {
  OrderedJson config = parse_config(config_json, kConfigFile);
  const std::vector<SettingsPlace> places = find_settings(config);
  if (places.size() != 1)
    throw CheckpointError(cat(kConfigFile, ": expected one quantization_config, got ", places.size(),
                              ": the file is not that of a quantised model"));
  OrderedJson& settings = config.at(places.front().pointer);
  const Understood before = understand(settings, places.front().key);
  std::vector<std::string> added;
  for (const std::string& module : modules)
    if (before.rules.code_of(module) && std::ranges::find(added, module) == added.end()) added.push_back(module);
  if (!added.empty()) before.method->exclude(settings, {added, others});
  check_promise(before.rules, understand(settings, places.front().key).rules, {modules, others});
  return config.dump(2) + "\n";
}

}  // namespace lancet
