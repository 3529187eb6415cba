#include "lancet/editor_parts/automatic_choices.h"

#include <algorithm>

namespace lancet {
namespace {

constexpr int64_t kMostLayers = 5;

/// Returns the layers with the places `first` to `last` in the list.
std::vector<int64_t> layers_between(const std::vector<int64_t>& layers, int64_t first, int64_t last) {
  return {layers.begin() + first, layers.begin() + last + 1};
}

/// Returns an eighth of the layers, but at most kMostLayers, from the place `first` on.
std::vector<int64_t> layers_from(const std::vector<int64_t>& layers, int64_t first) {
  return layers_between(layers, first, first + std::min(std::ssize(layers) / 8, kMostLayers - 1));
}

}  // namespace

std::vector<int64_t> automatic_layers(const ModelConfig& config) {
  const std::vector<int64_t> layers = config.layers_with_mlp();
  const int64_t end = std::max<int64_t>(1, 3 * std::ssize(layers) / 10);
  return layers_between(layers, std::max<int64_t>(0, end - kMostLayers), end - 1);
}

int64_t automatic_rome_layer(const ModelConfig& config) {
  const std::vector<int64_t> layers = config.layers_with_mlp();
  return layers[layers.size() / 6];
}

std::vector<int64_t> automatic_middle_layers(const ModelConfig& config) {
  const std::vector<int64_t> layers = config.layers_with_mlp();
  return layers_from(layers, std::ssize(layers) / 2);
}

std::vector<int64_t> automatic_late_layers(const ModelConfig& config) {
  const std::vector<int64_t> layers = config.layers_with_mlp();
  return layers_from(layers, 3 * std::ssize(layers) / 5);
}

int64_t automatic_tuned_layer(const ModelConfig& config) {
  const std::vector<int64_t> layers = config.layers_with_mlp();
  return layers[2 * layers.size() / 3];
}

}  // namespace lancet
