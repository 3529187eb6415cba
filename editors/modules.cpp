#include "modules.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {

std::vector<WeightId> parse_modules(ConfigSection& editor) {
  constexpr std::pair<std::string_view, WeightKind> kKinds[] = {
      {"gate", WeightKind::kGate}, {"up", WeightKind::kUp}, {"down", WeightKind::kDown}};
  ConfigSection section = editor.section("modules");
  std::vector<WeightId> modules;
  for (const auto& [name, kind] : kKinds)
    for (const int64_t layer : section.integers(name, {.min = 0}, std::vector<int64_t>{}))
      modules.push_back({kind, layer});
  section.finish();
  if (modules.empty()) editor.problem("modules", "expected at least one of gate, up and down: [layers]");
  std::sort(modules.begin(), modules.end(),
            [](const WeightId& a, const WeightId& b) { return std::tie(a.layer, a.kind) < std::tie(b.layer, b.kind); });
  if (std::adjacent_find(modules.begin(), modules.end()) != modules.end())
    editor.problem("modules", "a layer stands twice");
  return modules;
}

void check_modules(const std::vector<WeightId>& modules, const ModelConfig& config) {
  for (const WeightId& id : modules)
    if (id.layer >= config.n_layers)
      throw ConfigError(cat("editor.modules: layer ", id.layer, ": expected 0 to ", config.n_layers - 1,
                            ": the model has ", config.n_layers, " layers"));
}

}  // namespace lancet
