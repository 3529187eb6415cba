#include "moved_weights.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "lancet/core/strings.h"
#include "lancet/job/dotted_key.h"
#include "remedies.h"

namespace lancet {
namespace {

constexpr double kMuchMoved = 0.1;  // share of a layer's norm
constexpr double kTold = 0.01;      // if a layer moved by less, no warning is given, even if the others moved much less
constexpr double kMuchFarther = 10;  // multiple of the next layer

/// How far a layer moved, relative to the norm of its edited weights.
struct MovedLayer {
  int64_t layer = 0;
  double growth = 0;
};

/// Returns the layers, beginning with the one that moved farthest.
std::vector<MovedLayer> moved_layers(const EditReport& report) {
  std::map<int64_t, std::pair<double, double>> squares;  // squared norms of a layer's change and of its weights
  for (const auto& [name, weight] : report.rounding) {
    auto& [change, norm] = squares[weight.id.layer];
    change += weight.delta_norm * weight.delta_norm;
    norm += weight.weight_norm * weight.weight_norm;
  }
  std::vector<MovedLayer> layers;
  for (const auto& [layer, square] : squares)
    layers.push_back({layer, square.second > 0 ? std::sqrt(square.first / square.second) : 0});
  std::stable_sort(layers.begin(), layers.end(),
                   [](const MovedLayer& a, const MovedLayer& b) { return a.growth > b.growth; });
  return layers;
}

std::string layer_text(const MovedLayer& moved) { return cat("layer ", moved.layer, " by ", percent(moved.growth)); }

}  // namespace

std::string what_helps(const std::vector<std::string>& remedies) {
  return remedies.empty() ? "" : cat(". What helps: ", join(remedies, "; "));
}

std::string spread_remedy(const ConfigTree& editor) {
  const ConfigTree* targets = find_dotted(editor, "targets");
  if (targets == nullptr || targets->scalar == "last") return "";
  return "set editor.targets: last, which gives each layer its share";
}

std::string moved_warning(const EditReport& report, const ConfigTree& editor) {
  const std::vector<MovedLayer> layers = moved_layers(report);
  if (layers.empty() || layers.front().growth <= kTold) return "";
  const MovedLayer& most = layers.front();
  const bool is_alone = layers.size() > 1 && most.growth > kMuchFarther * layers[1].growth;
  if (most.growth <= kMuchMoved && !is_alone) return "";
  std::vector<std::string> remedies = smaller_changes(editor);
  std::string beside;
  if (is_alone) {
    beside = cat(", more than ", kMuchFarther, " times as far as any other (", layer_text(layers[1]), ")");
    if (const std::string spread = spread_remedy(editor); !spread.empty()) remedies.insert(remedies.begin(), spread);
  } else if (const auto n = std::count_if(layers.begin() + 1, layers.end(),
                                          [](const MovedLayer& layer) { return layer.growth > kMuchMoved; });
             n > 0) {
    beside = cat(" (and ", counted(static_cast<size_t>(n), "other layer"), " by more than ", percent(kMuchMoved), ")");
  }
  return cat("the edits moved ", layer_text(most), " of its norm", beside,
             ": what else the model knows may suffer, as subject_kept, specificity and side_effects in evaluate show",
             what_helps(remedies));
}

}  // namespace lancet
