// Modules by the names of their tensors, as configurations of quantised models and adapters name them.
#pragma once

#include <string_view>

namespace lancet {

/// "model.layers.3.mlp.down_proj" of "model.layers.3.mlp.down_proj.weight", and of itself: a view of `tensor`.
constexpr std::string_view module_of(std::string_view tensor) {
  constexpr std::string_view kWeight = ".weight";
  return tensor.ends_with(kWeight) ? tensor.substr(0, tensor.size() - kWeight.size()) : tensor;
}

}  // namespace lancet
