#include "tune_trials.h"

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <span>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/job/dotted_key.h"
#include "lancet/spec/editor_spec.h"

namespace lancet {
namespace {

/// Values to try for an option that is given by a share a: multiples of the odds a / (1 - a), which are those of the
/// inverse of a weight.
constexpr double kMostShare = 0.999;
constexpr double kOdds[] = {0.25, 0.5, 1, 2, 4};
constexpr int64_t kFarthestShift = 2;

double number_of(const ConfigTree& scalar) { return std::stod(scalar.scalar); }

/// Rounds to three digits, as a person would write the number.
double rounded(double value) { return std::stod(short_number(value)); }

/// Moves a list of layers, or a map of such lists, by `shift`; nullopt if one would not be from 0 to `end` - 1.
std::optional<ConfigTree> shifted(ConfigTree layers, int64_t shift, int64_t end) {
  for (ConfigTree& item : layers.items) {
    const int64_t layer = parse_whole_number(item.scalar).value_or(-1) + shift;
    if (layer < 0 || layer >= end) return std::nullopt;
    item = ConfigTree::number(layer);
  }
  for (auto& [kind, list] : layers.entries) {
    std::optional<ConfigTree> moved = shifted(std::move(list), shift, end);
    if (!moved) return std::nullopt;
    list = std::move(*moved);
  }
  return layers;
}

/// Returns the layers that `layers: auto` or `modules: auto` means.
ConfigTree spelled(const std::string& key, const std::vector<WeightId>& targets) {
  ConfigTree layers = ConfigTree::list({}), modules = ConfigTree::map();
  for (const auto& [name, kind] :
       {std::pair{ModulesSpec::kGate.key, WeightKind::kGate}, std::pair{ModulesSpec::kUp.key, WeightKind::kUp},
        std::pair{ModulesSpec::kDown.key, WeightKind::kDown}}) {
    layers.items.clear();
    for (const WeightId& id : targets)
      if (id.kind == kind) layers.items.push_back(ConfigTree::number(id.layer));
    if (!layers.items.empty()) modules.set(std::string(name), layers);
  }
  return key == LayeredSpec::kLayers.key ? layers : modules;
}

SearchAxis shifts_axis(const std::string& key, const ConfigTree& own, const std::vector<WeightId>& targets,
                       int64_t end) {
  SearchAxis axis{key, {}};
  const ConfigTree layers = is_auto(own) ? spelled(key, targets) : own;
  for (int64_t shift = -kFarthestShift; shift <= kFarthestShift; ++shift)
    if (std::optional<ConfigTree> moved = shifted(layers, shift, end))
      axis.values.push_back(shift == 0 ? own : std::move(*moved));
  return axis;
}

/// An option of the editor's method of which a tune tries multiples.
struct TriedOption {
  std::string key;  ///< dotted
  const NumberOption* option;
};
std::vector<TriedOption> tried_options(const ConfigTree& editor) {
  std::vector<TriedOption> tried;
  for (const PlacedOption& placed : placed_options(kEditorOptions, editor.find(EditorSpec::kMethod.key)->scalar))
    if (const auto* number = std::get_if<const NumberOption*>(&placed.option); number && !(*number)->tried.empty())
      tried.push_back({placed.key, *number});
  return tried;
}

/// Returns nothing if the editor has no such number.
std::optional<SearchAxis> numbers_axis(const ConfigTree& editor, const TriedOption& tried) {
  const ConfigTree* own = find_dotted(editor, tried.key);
  if (own == nullptr || own->kind != ConfigTree::Kind::kScalar || is_auto(*own) || number_of(*own) == 0)
    return std::nullopt;
  SearchAxis axis{tried.key, {}};
  for (const double factor : tried.option->tried)
    axis.values.push_back(factor == 1 ? *own : ConfigTree::number(rounded(factor * number_of(*own))));
  return axis;
}

/// Returns nothing if the option has no share, is absent, or is a number.
std::optional<SearchAxis> shares_axis(const ConfigTree& editor, const TriedOption& tried) {
  const NumberOption& option = *tried.option;
  const ConfigTree* own = find_dotted(editor, tried.key);
  if (option.share_key.empty() || own == nullptr || (own->kind != ConfigTree::Kind::kMap && !is_auto(*own)))
    return std::nullopt;
  const double share = is_auto(*own) ? option.share : number_of(*own->find(option.share_key));
  SearchAxis axis{tried.key, {}};
  for (const double factor : kOdds) {
    const double other_share = std::min(rounded(factor * share / (1 - share + factor * share)), kMostShare);
    ConfigTree other = ConfigTree::map();
    other.set(std::string(option.share_key), ConfigTree::number(other_share));
    axis.values.push_back(factor == 1 ? *own : std::move(other));
  }
  return axis;
}

/// Counts the combinations, the product of all axes; returns 2^62 if there are more.
uint64_t count_choices(const std::vector<SearchAxis>& axes) {
  constexpr uint64_t kMany = uint64_t{1} << 62;
  uint64_t count = 1;
  for (const SearchAxis& axis : axes) count = count > kMany / axis.values.size() ? kMany : count * axis.values.size();
  return count;
}

Trial choice_at(const std::vector<SearchAxis>& axes, uint64_t index) {
  Trial trial;
  for (const SearchAxis& axis : axes) {
    trial.choice.emplace_back(axis.key, axis.values[index % axis.values.size()]);
    index /= axis.values.size();
  }
  return trial;
}

/// Whether two values mean the same, like 15000 and 1.5e4.
bool equal(const ConfigTree& a, const ConfigTree& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  if (a.kind == ConfigTree::Kind::kList)
    return std::equal(a.items.begin(), a.items.end(), b.items.begin(),
                      [](const auto& x, const auto& y) { return equal(x, y); });
  if (a.kind != ConfigTree::Kind::kScalar) return to_yaml(a) == to_yaml(b);
  try {
    return a.scalar == b.scalar || number_of(a) == number_of(b);
  } catch (const std::exception&) {  // at least one is not a number
    return false;
  }
}

}  // namespace

std::vector<SearchAxis> default_search(const ConfigTree& editor, const std::vector<WeightId>& targets,
                                       int64_t n_layers) {
  std::vector<SearchAxis> axes;
  const auto add = [&](std::optional<SearchAxis> axis) {
    if (axis) axes.push_back(std::move(*axis));
  };
  std::vector<TriedOption> tried = tried_options(editor);
  for (const TriedOption& each : tried) add(numbers_axis(editor, each));
  // the order of the axes decides what a seed draws, and shares have always been in reverse order
  std::reverse(tried.begin(), tried.end());
  for (const TriedOption& each : tried) add(shares_axis(editor, each));
  const std::string layers_key(LayeredSpec::kLayers.key), modules_key(GradientSpec::kModules.key);
  if (const ConfigTree* layers = editor.find(layers_key); layers != nullptr)  // there must be a layer above for a value
    add(shifts_axis(layers_key, *layers, targets, n_layers - 1));
  if (const ConfigTree* modules = editor.find(modules_key); modules != nullptr)
    add(shifts_axis(modules_key, *modules, targets, n_layers));
  return axes;
}

std::vector<Trial> draw_trials(const ConfigTree& editor, const std::vector<SearchAxis>& axes, int64_t count,
                               uint64_t seed) {
  std::vector<Trial> trials(1);  // the first trial is the job's own
  const uint64_t choices = count_choices(axes);
  const auto is_own = [&](const Trial& trial) {
    return std::all_of(trial.choice.begin(), trial.choice.end(), [&](const auto& value) {
      const ConfigTree* own = find_dotted(editor, value.first);
      return own != nullptr && equal(*own, value.second);
    });
  };
  std::mt19937_64 random(seed);
  std::set<uint64_t> drawn;
  while (static_cast<int64_t>(trials.size()) < count && drawn.size() < choices) {
    const uint64_t index = random() % choices;
    if (!drawn.insert(index).second) continue;
    if (Trial trial = choice_at(axes, index); !is_own(trial)) trials.push_back(std::move(trial));
  }
  return trials;
}

ConfigTree editor_of(const Trial& trial, ConfigTree editor) {
  for (const auto& [key, value] : trial.choice)
    if (const std::optional<PathObstacle> obstacle = set_at(editor, split(key, '.'), value))
      throw ConfigError(cat("tune.search: ", key, ": ", obstacle->place, " is a ", obstacle->what, ", expected a map"));
  return editor;
}

std::vector<int64_t> plan_rounds(int64_t trials, int64_t requests, int64_t halve) {
  std::vector<int64_t> rounds{requests};
  for (int64_t left = trials; left > halve && rounds.front() >= halve; left = (left + halve - 1) / halve)
    rounds.insert(rounds.begin(), rounds.front() / halve);
  return rounds;
}

double harmonic_mean(const std::vector<std::pair<std::string, double>>& metrics) {
  double inverse = 0;
  for (const auto& [name, value] : metrics) {
    if (value <= 0) return 0;
    inverse += 1 / value;
  }
  return static_cast<double>(metrics.size()) / inverse;
}

bool is_better(const Trial& a, const Trial& b) {
  if (a.failure.empty() != b.failure.empty()) return a.failure.empty();
  if (a.scores.size() != b.scores.size()) return a.scores.size() > b.scores.size();
  return !a.scores.empty() && a.scores.back().objective > b.scores.back().objective;
}

}  // namespace lancet
