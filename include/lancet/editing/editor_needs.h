// What an editing method needs from its requests, from the job and from the machine.
#pragma once

#include <cstdint>
#include <optional>

#include "lancet/statistics/null_space.h"

namespace lancet {

/// The needs of a method's backward passes, which run through the layers from its lowest target on.
struct BackwardNeeds {
  int64_t batch = 1;  ///< requests of one pass
  /// Trains each weight's whole change with Adam; else uses the tokens' inputs and gradients.
  bool trains_dense = true;
  bool projects = false;  ///< projects gradients with two bases of each weight
  bool whitens = false;   ///< multiplies gradients of down projections by a matrix [d_ffn, d_ffn]
};

/// What a method needs from its requests and from the job.
struct EditorNeeds {
  bool subject = true;      ///< requests must name their subject
  bool old_answer = false;  ///< requests must have target_true
  bool statistics = true;   ///< the job must have `statistics:`
  /// EditContext::null_space by this rule is used instead of covariance_factor.
  std::optional<NullSpaceRule> null_space = {};
  bool curvature = false;  ///< EditContext::curvature is used instead of covariance_factor
  /// The weight of the keys of other subjects in the covariance (MixedMoments); 0: the covariance is of text alone.
  double entity_weight = 0;
  std::optional<BackwardNeeds> backward = {};
  bool history = false;        ///< keys of earlier batches are part of every solve
  int64_t changes = 1;         ///< most changes of each weight by one batch; each change has a column for every request
  bool finish = false;         ///< Editor::finish() changes weights
  int64_t solve_matrices = 0;  ///< matrices [d_ffn, d_ffn] in f64 that a solve makes from C's factor
};

}  // namespace lancet
