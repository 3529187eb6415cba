// The weights that a session's model has while it is asked.
#pragma once

#include <functional>
#include <vector>

namespace lancet {

enum class AskedWeights {
  kEdited,   ///< those that the edits leave
  kUnedited  ///< those from before the first edit
};

/// Puts these weights in a session's model.
using PutWeights = std::function<void(AskedWeights weights)>;

/// Weights that take turns in a session's model.
struct WeightsInTurns {
  std::vector<AskedWeights> weights = {};
  PutWeights put = {};
};

}  // namespace lancet
