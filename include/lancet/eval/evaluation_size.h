// How much an evaluation runs, for plans of memory and time.
#pragma once

#include <cstdint>

#include "lancet/eval/scoring.h"
#include "lancet/models/generate.h"

namespace lancet {

/// How much an evaluation runs.
struct EvaluationSize {
  ScoringSize scoring;
  int64_t kept_states = 0;  ///< whose last hidden state lies on the host until the end
  GenerationSize generation;

  /// Both, one after the other.
  EvaluationSize operator+(const EvaluationSize& other) const;
};

}  // namespace lancet
