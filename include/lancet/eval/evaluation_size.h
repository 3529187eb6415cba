// How much an evaluation runs, for plans of memory and time.
#pragma once

#include <cstdint>

#include "lancet/eval/scoring.h"

namespace lancet {

/// Rows that are generated, the longest of them.
struct GenerationSize {
  int64_t rows = 0;
  int64_t row_tokens = 0;  ///< prompt and what is added
  int64_t prompt_tokens = 0;
  bool from_all = false;  ///< sampled from the whole distribution
};

/// How much an evaluation runs.
struct EvaluationSize {
  ScoringSize scoring;
  int64_t kept_tokens = 0;  ///< whose last hidden state lies on the host until the end
  GenerationSize generation;

  /// Both, one after the other.
  EvaluationSize operator+(const EvaluationSize& other) const;
};

}  // namespace lancet
