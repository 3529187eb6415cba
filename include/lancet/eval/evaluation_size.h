// The size of an evaluation, for plans of memory and time.
#pragma once

#include <cstdint>

#include "lancet/eval/scoring.h"
#include "lancet/models/generate.h"

namespace lancet {

/// The amount of work of an evaluation.
struct EvaluationSize {
  ScoringSize scoring;
  int64_t kept_states = 0;  ///< places whose last hidden state is kept on the host until the end
  GenerationSize generation;

  /// Returns the size of both evaluations, one after the other.
  EvaluationSize operator+(const EvaluationSize& other) const;
};

}  // namespace lancet
