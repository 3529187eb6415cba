#include "lancet/editor_parts/modules.h"

#include <algorithm>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/editor_parts/automatic_choices.h"
#include "lancet/spec/editor_spec.h"
#include "lancet/spec/gradient_spec.h"
#include "lancet/spec/read_option.h"

namespace lancet {

std::optional<std::vector<WeightId>> parse_modules(ConfigSection& editor, ModuleKinds kinds) {
  if (editor.is_auto(GradientSpec::kModules.key)) return std::nullopt;
  ConfigSection section = editor.section(GradientSpec::kModules.key);
  std::vector<WeightId> modules;
  for (const auto& [option, kind] :
       {std::pair{&ModulesSpec::kGate, WeightKind::kGate}, std::pair{&ModulesSpec::kUp, WeightKind::kUp},
        std::pair{&ModulesSpec::kDown, WeightKind::kDown}}) {
    if (kinds == ModuleKinds::kDown && kind != WeightKind::kDown) continue;
    for (const int64_t layer : read(section, *option)) modules.push_back({kind, layer});
  }
  section.finish();
  if (modules.empty())
    editor.problem(GradientSpec::kModules.key, kinds == ModuleKinds::kDown
                                                   ? "expected down: [layers]"
                                                   : "expected at least one of gate, up and down: [layers]");
  std::sort(modules.begin(), modules.end(),
            [](const WeightId& a, const WeightId& b) { return std::tie(a.layer, a.kind) < std::tie(b.layer, b.kind); });
  if (std::adjacent_find(modules.begin(), modules.end()) != modules.end())
    editor.problem(GradientSpec::kModules.key, "a layer stands twice");
  return modules;
}

TargetEnd parse_target_end(ConfigSection& editor) { return read<TargetEnd>(editor, EditorSpec::kTargetEnd); }

void check_has_mlp(std::string_view option, const ModelConfig& config, int64_t layer) {
  if (config.has_mlp(layer)) return;
  std::vector<std::string> others;
  for (const int64_t other : config.layers_with_mlp()) others.push_back(cat(other));
  throw ConfigError(cat("editor.", option, ": layer ", layer, " of a ", config.family->name,
                        " has no MLP: expected layers that have one: ", join(others)));
}

void check_value_layer(const ModelConfig& config, int64_t layer) {
  if (layer >= config.n_layers - 1)
    throw ConfigError(cat("editor.layers: ", layer, ": expected 0 to ", config.n_layers - 2, ": the model has ",
                          config.n_layers, " layers, and a value needs at least one layer above it to act through"));
  check_has_mlp(LayeredSpec::kLayers.key, config, layer);
}

std::vector<WeightId> modules_of(const std::optional<std::vector<WeightId>>& modules, AutomaticModules automatic,
                                 const ModelConfig& config) {
  if (!modules && automatic == AutomaticModules::kOneDown) return {{WeightKind::kDown, automatic_tuned_layer(config)}};
  std::vector<WeightId> ids = modules.value_or(std::vector<WeightId>{});
  if (!modules && automatic == AutomaticModules::kLateDown) {
    for (const int64_t layer : automatic_late_layers(config)) ids.push_back({WeightKind::kDown, layer});
    return ids;
  }
  if (!modules)
    for (const int64_t layer : automatic_middle_layers(config))
      for (const WeightKind kind : {WeightKind::kGate, WeightKind::kUp, WeightKind::kDown})
        if (has_weight(config, kind) && config.has_experts(layer) == (kind == WeightKind::kDown))
          ids.push_back({kind, layer});
  for (const WeightId& id : ids) {
    if (!has_weight(config, id.kind))
      throw ConfigError(
          cat("editor.modules.gate: a ", config.family->name, " has no gate projection: expected up and down alone"));
    if (id.layer >= config.n_layers)
      throw ConfigError(cat("editor.modules: layer ", id.layer, ": expected 0 to ", config.n_layers - 1,
                            ": the model has ", config.n_layers, " layers"));
    check_has_mlp(GradientSpec::kModules.key, config, id.layer);
    if (id.kind != WeightKind::kDown && config.has_experts(id.layer))
      throw ConfigError(cat("editor.modules: layer ", id.layer, " has ", config.experts.count,
                            " experts, of which the down projections alone can be edited: expected it in down alone"));
  }
  return ids;
}

}  // namespace lancet
