// For Python: published options, and hyper-parameter files of other tools.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "bindings.h"
#include "lancet/job_setup/imported_hparams.h"
#include "lancet/job_setup/presets.h"
#include "lancet/models/model_files.h"

namespace lancet::python {
namespace {

namespace nb = nanobind;
using SetupJson = nlohmann::ordered_json;

/// Returns a scalar as YAML reads it: without quotes it may be a number, a truth value or nothing.
SetupJson scalar_json(const ConfigTree& tree) {
  if (tree.quoted) return tree.scalar;
  if (tree.scalar == "true" || tree.scalar == "false") return tree.scalar == "true";
  char* end = nullptr;
  const long long whole = std::strtoll(tree.scalar.c_str(), &end, 10);
  if (!tree.scalar.empty() && *end == '\0') return whole;
  const double number = std::strtod(tree.scalar.c_str(), &end);
  if (!tree.scalar.empty() && *end == '\0') return number;
  return tree.scalar;
}

SetupJson json_of(const ConfigTree& tree) {
  SetupJson json;
  if (tree.kind == ConfigTree::Kind::kScalar) json = scalar_json(tree);
  if (tree.kind == ConfigTree::Kind::kList) {
    json = SetupJson::array();
    for (const ConfigTree& item : tree.items) json.push_back(json_of(item));
  }
  if (tree.kind == ConfigTree::Kind::kMap) {
    json = SetupJson::object();
    for (const auto& [key, value] : tree.entries) json[key] = json_of(value);
  }
  return json;
}

/// Returns a YAML or JSON file as JSON.
std::string config_json(const std::string& file) { return json_of(load_config(file)).dump(); }

/// Returns the job's sections, and what each key became, as JSON. `model`: a folder; if empty, layers are not checked.
std::string imported_hparams(const std::string& file, const std::string& model) {
  std::optional<DescribedModel> described;
  if (!model.empty()) described.emplace(describe_model(model, {}));
  const ImportedHparams imported = import_hparams(file, "", described ? &described->config : nullptr);
  SetupJson keys = SetupJson::array();
  for (const ImportedKey& key : imported.keys)
    keys.push_back({{"key", key.key}, {"value", key.value}, {"fate", fate_name(key.fate)}, {"what", key.what}});
  return SetupJson{{"method", imported.method}, {"job", json_of(imported.job)}, {"keys", keys}}.dump();
}

/// Returns the presets in the program as a list of JSON objects. `model`: a folder; empty for all models.
std::string presets(const std::string& model) {
  std::optional<ModelFacts> facts;
  if (!model.empty()) facts = facts_of(describe_model(model, {}).config);
  SetupJson list = SetupJson::array();
  for (const Preset& preset : built_in_presets()) {
    if (facts && preset.facts != *facts) continue;
    list.push_back({{"name", preset.name},
                    {"method", preset.method},
                    {"auto", preset.is_automatic},
                    {"models", preset.models},
                    {"source", preset.source},
                    {"editor", json_of(preset.editor)}});
  }
  return list.dump();
}

}  // namespace

void bind_setup(nb::module_& module) {
  module.def("config_json", config_json, nb::arg("file"));
  module.def("imported_hparams", imported_hparams, nb::arg("file"), nb::arg("model"));
  module.def("presets", presets, nb::arg("model"));
}

}  // namespace lancet::python
