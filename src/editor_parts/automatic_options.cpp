#include "lancet/editor_parts/automatic_options.h"

#include <torch/types.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/editor_parts/automatic_choices.h"
#include "lancet/spec/editor_spec.h"
#include "lancet/spec/gradient_spec.h"
#include "lancet/spec/read_option.h"

namespace lancet {

SolveWeight parse_solve_weight(ConfigSection& editor, const NumberOption& option) {
  SolveWeight weight{.option = std::string(option.key), .realised_share = option.share};
  if (const std::optional<double> share = parse_share(editor, option))
    weight.realised_share = *share;
  else
    weight.number = read_or_auto(editor, option);
  return weight;
}

std::optional<double> parse_share(ConfigSection& editor, const NumberOption& option) {
  if (!editor.is_map(option.key)) return std::nullopt;
  ConfigSection section = editor.section(option.key);
  const double share = section.number(option.share_key, kShareRange);
  section.finish();
  return share;
}

double weight_of_share(const Tensor& strengths_N, double share, const std::string& where) {
  const double middle = strengths_N.median().item<double>();  // the lower one of two middle strengths
  const double weight = middle * (1 - share) / share;
  if (!(weight > 0) || !std::isfinite(weight))
    throw NumericError(cat(where, ": auto: the keys' leverages have a median of ", middle,
                           ": expected a finite number above 0: give the option a number, or look at the statistics"));
  return weight;
}

double choose_once(EditorState& state, EditOutcome& outcome, const std::string& option, int64_t layer,
                   const std::function<double()>& measure) {
  const std::string name = cat("auto.", option, ".", layer);
  if (!state.tensors.contains(name)) state.tensors.emplace(name, torch::tensor(measure(), torch::kDouble));
  const ChosenOption chosen{option, layer, state.tensors.at(name).item<double>()};
  if (std::find(outcome.chosen.begin(), outcome.chosen.end(), chosen) == outcome.chosen.end())
    outcome.chosen.push_back(chosen);
  return chosen.value;
}

double weight_for(const SolveWeight& weight, const WeightQuestion& asked, int64_t layer,
                  const std::function<Tensor()>& leverages) {
  if (weight.option.empty() || weight.number) return weight.number.value_or(0);
  return choose_once(asked.state, asked.outcome, weight.option, layer, [&] {
    const std::string where = cat("layer ", layer, ": editor.", weight.option);
    const auto measure = [&] {
      return torch::tensor(weight_of_share(leverages(), weight.realised_share, where), torch::kDouble);
    };
    return asked.context.decide_by(measure).item<double>();
  });
}

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
