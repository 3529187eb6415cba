// The weights that a session's model uses to answer.
#pragma once

#include <functional>
#include <vector>

namespace lancet {

enum class AskedWeights {
  kEdited,   ///< the weights with all edits
  kUnedited  ///< the weights before the first edit
};

/// Puts these weights in a session's model.
using PutWeights = std::function<void(AskedWeights weights)>;

/// Sets of weights that take turns in a session's model.
struct WeightsInTurns {
  std::vector<AskedWeights> weights = {};
  PutWeights put = {};
};

}  // namespace lancet
