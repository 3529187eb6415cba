#include "lancet/editor_parts/automatic_choices.h"

#include <algorithm>

namespace lancet {
namespace {

constexpr int64_t kMostLayers = 5;

std::vector<int64_t> layers_between(int64_t first, int64_t last) {
  std::vector<int64_t> layers;
  for (int64_t layer = first; layer <= last; ++layer) layers.push_back(layer);
  return layers;
}

/// An eighth of the depth, at most kMostLayers.
std::vector<int64_t> layers_from(int64_t first, int64_t n_layers) {
  return layers_between(first, first + std::min(n_layers / 8, kMostLayers - 1));
}

}  // namespace

std::vector<int64_t> automatic_layers(int64_t n_layers) {
  const int64_t end = std::max<int64_t>(1, 3 * n_layers / 10);
  return layers_between(std::max<int64_t>(0, end - kMostLayers), end - 1);
}

int64_t automatic_rome_layer(int64_t n_layers) { return n_layers / 6; }

std::vector<int64_t> automatic_middle_layers(int64_t n_layers) { return layers_from(n_layers / 2, n_layers); }

std::vector<int64_t> automatic_late_layers(int64_t n_layers) { return layers_from(3 * n_layers / 5, n_layers); }

int64_t automatic_tuned_layer(int64_t n_layers) { return 2 * n_layers / 3; }

}  // namespace lancet
