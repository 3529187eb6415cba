#include <algorithm>

#include "layered_options.h"

namespace lancet {
namespace {

Compat parse_compat(ConfigSection& editor) {
  static const std::vector<std::string> kNames{"none", "memit", "easyedit"};
  const std::string name = editor.choice("compat", kNames, kNames.front());
  return static_cast<Compat>(std::find(kNames.begin(), kNames.end(), name) - kNames.begin());
}

}  // namespace

LayeredOptions parse_layered_options(ConfigSection& editor, LayeredOptions options) {
  options.layers = editor.integers("layers", {.min = 0});
  if (options.layers.empty()) editor.problem("layers", "expected at least one layer");
  std::sort(options.layers.begin(), options.layers.end());
  if (std::adjacent_find(options.layers.begin(), options.layers.end()) != options.layers.end())
    editor.problem("layers", "a layer stands twice");
  options.values = parse_value_options(editor.section("values"), options.values);
  options.contexts = parse_context_options(editor);
  options.compat = parse_compat(editor);
  // memit's generator decodes with special tokens, which come back as tokens where the tokenizer reads them in text
  if (options.compat == Compat::kMemit) options.contexts.opening = ContextOptions::Opening::kWithBos;
  // BLUE's values are found on the weights as edited so far
  if (options.course == Course::kTogether && !options.values_on_unedited && editor.boolean("blue", false)) {
    if (options.layers.size() < 2)
      editor.problem("blue", "expected at least two layers: the first and the last are changed");
    else
      options.layers = {options.layers.front(), options.layers.back()};
    options.course = Course::kLayerByLayer;
  }
  options.equal_keys = parse_equal_keys(editor);
  options.norm_anchor = parse_norm_anchor(editor);
  return options;
}

}  // namespace lancet
