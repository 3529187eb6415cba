#include "lancet/editor_parts/layered_options.h"

#include <torch/types.h>
#include <algorithm>
#include <map>
#include <numeric>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/editor_parts/automatic_choices.h"
#include "lancet/editor_parts/automatic_options.h"
#include "lancet/spec/editor_spec.h"
#include "lancet/spec/layered_spec.h"
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

double parse_entity_weight(ConfigSection& editor) {
  ConfigSection section = editor.section(LayeredSpec::kEntities.key);
  const double weight = read(section, EntitiesSpec::kWeight);
  section.finish();
  return weight;
}

/// Refuses options that do not work with chunks. The values of chunks are found one after another at the last layer,
/// with the values of the earlier chunks in place exactly as they were found.
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

}  // namespace

LayeredOptions parse_layered_options(ConfigSection& editor, LayeredOptions options) {
  options.layers = parse_layers(editor);
  options.values = parse_value_options(editor.section(LayeredSpec::kValues.key), options.values);
  options.contexts = parse_context_options(editor);
  options.entity_weight = parse_entity_weight(editor);
  options.target_rule.compat = read<Compat>(editor, LayeredSpec::kCompat);
  options.target_rule.end = parse_target_end(editor);
  if (options.target_rule.compat != Compat::kNone && !options.contexts.chat.empty())
    editor.problem(LayeredSpec::kCompat.key, "expected it absent with contexts.chat: no public code edits in a chat");
  // memit's generator decodes with special tokens, and the tokenizer may read their text as special tokens again
  if (options.target_rule.compat == Compat::kMemit) options.contexts.opening = ContextOptions::Opening::kWithBos;
  // PMET writes only the MLP's half of its value, which is too little at the first layer
  if (options.order == EditOrder::kTogether && options.spread == Spread::kEven)
    options.targets = read<LayerTarget>(editor, ResidualSpec::kTargets);
  // BLUE finds values on the weights edited so far
  if (options.order == EditOrder::kTogether && !options.values_on_unedited && read(editor, LayeredSpec::kBlue)) {
    if (options.layers && options.layers->size() < 2)
      editor.problem(LayeredSpec::kBlue.key, "expected at least two layers: the first and the last are changed");
    if (options.targets == LayerTarget::kReplay)
      editor.problem(LayeredSpec::kBlue.key,
                     "expected false with `targets: replay`: BLUE finds a value at each layer, "
                     "and replays none");
    options.order = EditOrder::kLayerByLayer;
  }
  options.target_rule.chunk_tokens = options.values.chunk_tokens;
  options.target_rule.kept = options.values.kept_prompts;
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

namespace {

constexpr double kNearCosine = 0.99;

/// Returns the representative of the group of column `i`: its smallest column.
size_t root_of(std::vector<size_t>& parents, size_t i) {
  while (parents[i] != i) i = parents[i] = parents[parents[i]];
  return i;
}

}  // namespace

EqualKeys parse_equal_keys(ConfigSection& editor) { return read<EqualKeys>(editor, LayeredSpec::kEqualKeys); }

KeyGroups group_by_key(std::span<const PreparedRequest> requests) {
  KeyGroups groups;
  std::map<std::vector<TokenId>, size_t> places;
  for (size_t i = 0; i < requests.size(); ++i) {
    const LocatedPrompt& plain = requests[i].prompts[0];
    const std::vector<TokenId> ids(plain.ids.begin(), plain.ids.begin() + plain.lookup + 1);
    const auto [place, is_new] = places.emplace(ids, groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(static_cast<int64_t>(i));
  }
  return groups;
}

std::vector<KeyGroups> plan_rounds(const KeyGroups& groups, EqualKeys handling) {
  if (handling == EqualKeys::kMean) return {groups};
  std::vector<KeyGroups> rounds(1);
  for (const std::vector<int64_t>& group : groups) {
    for (size_t i = 0; i < group.size(); ++i) {
      const size_t round = handling == EqualKeys::kSplit ? i : 0;
      if (round == rounds.size()) rounds.emplace_back();
      rounds[round].push_back({group[i]});
    }
  }
  for (KeyGroups& round : rounds) std::sort(round.begin(), round.end());
  return rounds;
}

LowRankDelta by_request(const LowRankDelta& delta, const KeyGroups& groups, int64_t n_requests) {
  std::vector<int64_t> owners, members;
  std::vector<double> parts;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const int64_t member : groups[g]) {
      owners.push_back(static_cast<int64_t>(g));
      members.push_back(member);
      parts.push_back(1.0 / static_cast<double>(groups[g].size()));
    }
  }
  const auto on = [&](const Tensor& tensor) { return tensor.to(delta.left_OR.device()); };
  const Tensor owner_M = on(torch::tensor(owners, torch::kLong)), member_M = on(torch::tensor(members, torch::kLong));
  const Tensor part_M = on(torch::tensor(parts, torch::kDouble));
  const Tensor left_ON = torch::zeros({delta.left_OR.size(0), n_requests}, delta.left_OR.options());
  const Tensor right_NI = torch::zeros({n_requests, delta.right_RI.size(1)}, delta.right_RI.options());
  return {left_ON.index_copy(1, member_M, delta.left_OR.index_select(1, owner_M) * part_M),
          right_NI.index_copy(0, member_M, delta.right_RI.index_select(0, owner_M))};
}

KeyGroups shared_keys(const KeyGroups& groups) {
  KeyGroups shared;
  for (const std::vector<int64_t>& group : groups)
    if (group.size() > 1) shared.push_back(group);
  return shared;
}

std::string equal_keys_effect(EqualKeys handling) {
  return cat("have the same key: ", handling == EqualKeys::kMean
                                        ? "they get one target, the mean of theirs"
                                        : "they are edited one after another, and the last one prevails");
}

KeyGroups near_keys(const Tensor& keys_FN) {
  const Tensor unit = keys_FN / keys_FN.norm(2, 0, /*keepdim=*/true);
  const Tensor near_NN = (torch::matmul(unit.t(), unit) > kNearCosine).to(Placement::host()).contiguous();
  const auto n = static_cast<size_t>(near_NN.size(0));
  const bool* near = near_NN.const_data_ptr<bool>();
  std::vector<size_t> parents(n);
  std::iota(parents.begin(), parents.end(), size_t{0});
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j)
      if (near[i * n + j]) {
        const auto [first, second] = std::minmax({root_of(parents, i), root_of(parents, j)});
        parents[second] = first;
      }
  KeyGroups groups(n);
  for (size_t i = 0; i < n; ++i) groups[root_of(parents, i)].push_back(static_cast<int64_t>(i));
  return shared_keys(groups);
}

std::string near_keys_effect() {
  return cat("have nearly the same key (cosine > ", kNearCosine,
             "): each pulls it to its own value, and none may be reached; editor.equal_keys: mean or split handles ",
             "those that are equal");
}

namespace {

std::string state_name(int64_t layer) { return cat("norm_anchor.", layer); }

}  // namespace

NormAnchor parse_norm_anchor(ConfigSection& editor) {
  ConfigSection section = editor.section(LayeredSpec::kNormAnchor.key);
  NormAnchor anchor;
  anchor.mode = read<NormAnchor::Mode>(section, NormAnchorSpec::kMode);
  anchor.limit = read(section, NormAnchorSpec::kLimit);
  section.finish();
  return anchor;
}

bool has_anchor(const EditorState& state, int64_t layer) { return state.tensors.contains(state_name(layer)); }

double anchor_norm(const EditorState& state, int64_t layer) {
  return state.tensors.at(state_name(layer)).item<double>();
}

Tensor value_norms(const Tensor& z_ND) { return z_ND.norm(2, 1).to(torch::kDouble); }

void keep_anchor(EditorState& state, int64_t layer, const Tensor& norm_N) {
  state.tensors.emplace(state_name(layer), torch::tensor(norm_N.mean().item<double>(), torch::kDouble));
}

std::vector<std::string> apply_anchor(const NormAnchor& anchor, double norm, const Tensor& norm_N, Tensor& z_ND) {
  std::vector<std::string> left_out(static_cast<size_t>(z_ND.size(0)));
  for (int64_t i = 0; i < z_ND.size(0); ++i)
    if (const double own = norm_N[i].item<double>(); own > anchor.limit * norm)
      left_out[static_cast<size_t>(i)] = cat("its value's norm is ", own, ", more than ", anchor.limit,
                                             " times the unedited model's ", norm, " (editor.norm_anchor.limit)");
  if (anchor.mode == NormAnchor::Mode::kRescale)
    z_ND = z_ND * (norm / norm_N).unsqueeze(1).to(z_ND.device(), z_ND.scalar_type());
  return left_out;
}

}  // namespace lancet
