#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/editor_parts/automatic_choices.h"
#include "lancet/editor_parts/layered_options.h"
#include "lancet/editor_parts/modules.h"
#include "lancet/spec/editor_spec.h"
#include "lancet/spec/read_option.h"

namespace lancet {

std::optional<std::vector<int64_t>> parse_layers(ConfigSection& editor) {
  const std::optional<std::vector<int64_t>> layers = read_or_auto(editor, LayeredSpec::kLayers);
  if (!layers) return layers;
  if (layers->empty()) editor.problem(LayeredSpec::kLayers.key, "expected at least one layer");
  if (std::adjacent_find(layers->begin(), layers->end(), std::greater_equal<>()) != layers->end())
    editor.problem(LayeredSpec::kLayers.key, "expected ascending numbers, each once: layers are changed in that order");
  return layers;
}

namespace {

/// Chunks' values are found one after another at the last layer, each with the ones before it as they were found.
void refuse_beside_chunks(ConfigSection& editor, const LayeredOptions& options) {
  const auto refuse = [&](std::string_view key, std::string_view expected, std::string_view why) {
    editor.problem(key, cat("expected ", expected, " with values.chunk_tokens: ", why));
  };
  if (options.targets != LayerTarget::kLast)
    refuse(ResidualSpec::kTargets.key, "last", "a replay has one place of a request, and puts no others back");
  if (options.order != EditOrder::kTogether)
    refuse(LayeredSpec::kBlue.key, "false", "values that the first layer has realised would be held a second time");
  if (options.equal_keys != EqualKeys::kWarn)
    refuse(LayeredSpec::kEqualKeys.key, "warn", "a chunk's value follows from those before it, and cannot leave them");
  if (options.norm_anchor.mode != NormAnchor::Mode::kOff)
    refuse(LayeredSpec::kNormAnchor.key, "mode: off", "a value that is rescaled is not the one that was held");
  if (options.target_rule.compat != Compat::kNone)
    refuse(LayeredSpec::kCompat.key, "none", "public codes tokenise targets whole");
  if (!options.contexts.chat.empty())
    refuse(LayeredSpec::kContexts.key, "no chat", "there a target may begin with other tokens, and have other chunks");
}

/// A replay does not suffer from a layer too many, as a value that is spread does: it is for layers that nobody chose.
LayerTarget automatic_targets(const LayeredOptions& options) {
  const bool is_possible = options.order == EditOrder::kTogether && options.values.chunk_tokens == 0;
  return options.replays_by_itself && !options.layers && is_possible ? LayerTarget::kReplay : LayerTarget::kLast;
}

}  // namespace

LayeredOptions parse_layered_options(ConfigSection& editor, LayeredOptions options) {
  options.layers = parse_layers(editor);
  options.values = parse_value_options(editor.section(LayeredSpec::kValues.key), options.values);
  options.contexts = parse_context_options(editor);
  options.target_rule.compat = read<Compat>(editor, LayeredSpec::kCompat);
  options.target_rule.end = parse_target_end(editor);
  if (options.target_rule.compat != Compat::kNone && !options.contexts.chat.empty())
    editor.problem(LayeredSpec::kCompat.key, "expected it absent with contexts.chat: no public code edits in a chat");
  // memit's generator decodes with special tokens, which come back as tokens where the tokenizer reads them in text
  if (options.target_rule.compat == Compat::kMemit) options.contexts.opening = ContextOptions::Opening::kWithBos;
  // PMET writes the MLP's half of its value alone, which at the first layer is too little
  if (options.order == EditOrder::kTogether && options.spread == Spread::kEven)
    options.targets = read<LayerTarget>(editor, ResidualSpec::kTargets);
  // BLUE's values are found on the weights as edited so far
  if (options.order == EditOrder::kTogether && !options.values_on_unedited && read(editor, LayeredSpec::kBlue)) {
    if (options.layers && options.layers->size() < 2)
      editor.problem(LayeredSpec::kBlue.key, "expected at least two layers: the first and the last are changed");
    if (options.targets == LayerTarget::kReplay)
      editor.problem(LayeredSpec::kBlue.key,
                     "expected false with `targets: replay`: BLUE finds a value at each layer, "
                     "and replays none");
    options.order = EditOrder::kLayerByLayer;
  }
  if (options.targets == LayerTarget::kAuto) options.targets = automatic_targets(options);
  options.target_rule.chunk_tokens = options.values.chunk_tokens;
  options.error_feedback = options.error_feedback && read(editor, ResidualSpec::kErrorFeedback);
  if (options.error_feedback && !editor.has(EditorSpec::kRect.key) && !editor.has(EditorSpec::kRevive.key))
    editor.problem(ResidualSpec::kErrorFeedback.key,
                   "expected rect or revive beside it: without them every change is applied as it was solved");
  options.equal_keys = parse_equal_keys(editor);
  options.norm_anchor = parse_norm_anchor(editor);
  if (options.values.chunk_tokens > 0) refuse_beside_chunks(editor, options);
  return options;
}

std::optional<double> parse_text_budget(ConfigSection& editor) {
  const double share = read(editor, ResidualSpec::kTextBudget);
  if (share == 0) return std::nullopt;
  for (const std::string_view filter : {EditorSpec::kRect.key, EditorSpec::kRevive.key, EditorSpec::kPrune.key})
    if (editor.has(filter))
      editor.problem(ResidualSpec::kTextBudget.key, cat("expected it absent with ", filter,
                                                        ", by which a change is another than was solved within it"));
  return share;
}

std::vector<int64_t> layers_of(const LayeredOptions& options, const ModelConfig& config) {
  const bool one_by_one = options.order == EditOrder::kOneByOne;
  std::vector<int64_t> layers = options.layers ? *options.layers
                                : one_by_one   ? std::vector{automatic_rome_layer(config)}
                                               : automatic_layers(config);
  for (const int64_t layer : layers) check_value_layer(config, layer);
  if (options.order != EditOrder::kLayerByLayer) return layers;
  if (layers.size() < 2)
    throw ConfigError(cat("editor.blue: expected at least two layers: the first and the last are changed; auto gives ",
                          "one for a model of ", config.n_layers, ": give layers"));
  return {layers.front(), layers.back()};
}

std::vector<std::span<const int64_t>> stages_of(const LayeredOptions& options, std::span<const int64_t> layers) {
  if (options.order == EditOrder::kTogether) return {layers};
  std::vector<std::span<const int64_t>> each;
  for (size_t i = 0; i < layers.size(); ++i) each.push_back(layers.subspan(i, 1));
  return each;
}

int64_t value_layer_of(const LayeredOptions& options, std::span<const int64_t> stage) {
  return options.targets == LayerTarget::kReplay ? stage.front() : stage.back();
}

}  // namespace lancet
