// `lancet presets`: the published options inside the program.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "lancet/core/strings.h"
#include "lancet/job_setup/presets.h"
#include "lancet/plan/model_session.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Preset> presets_for(const std::string& model) {
  const std::span<const Preset> all = built_in_presets();
  std::vector<Preset> chosen(all.begin(), all.end());
  if (model.empty()) return chosen;
  const ModelFacts facts = facts_of(describe_model(model, {}).config);
  std::erase_if(chosen, [&](const Preset& preset) { return preset.facts != facts; });
  return chosen;
}

void print_list(const std::vector<Preset>& presets, const Output& output) {
  if (output.json) {
    Json list = Json::array();
    for (const Preset& preset : presets)
      list.push_back({{"name", preset.name},
                      {"method", preset.method},
                      {"auto", preset.is_automatic},
                      {"models", preset.models},
                      {"source", preset.source}});
    std::cout << list.dump(1) << "\n";
    return;
  }
  std::vector<std::vector<std::string>> rows{{"name", "method", "auto"}};
  for (const Preset& preset : presets) rows.push_back({preset.name, preset.method, preset.is_automatic ? "yes" : "no"});
  std::cout << format_table(rows);
  if (presets.empty()) std::cout << "  there is none for this model's config.json\n";
  std::cout << "  lancet presets NAME shows one with its models and its source; auto: what editor.preset: auto takes\n";
}

ExitCode run_presets(const std::string& name, const std::string& model, const Output& output) {
  begin(output);
  if (!name.empty() && !model.empty()) throw ConfigError("lancet presets: expected either a name or --model");
  if (name.empty()) {
    print_list(presets_for(model), output);
    return ExitCode::kOk;
  }
  const Preset preset = find_preset(name);
  if (output.json)
    std::cout << Json{{"name", preset.name}, {"yaml", preset.text}}.dump(1) << "\n";
  else
    std::cout << preset.text;
  return ExitCode::kOk;
}

}  // namespace

void add_presets(CLI::App& app, Action& action) {
  auto name = std::make_shared<std::string>();
  auto model = std::make_shared<std::string>();
  auto output = std::make_shared<Output>();
  CLI::App& command = add_command(app, "presets",
                                  "List the published options of methods for models, or show one as YAML.\n"
                                  "  lancet presets --model DIR\n"
                                  "  lancet presets llama-3-8b-memit");
  add_option(command, "name", *name, "Name of the preset to show");
  add_option(command, "--model", *model, "Only presets for this model folder").type("DIR");
  add_output_options(command, *output);
  on_choice(command, action, [=] { return run_presets(*name, *model, *output); });
}

}  // namespace lancet::cli
