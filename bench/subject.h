// What is measured: a model with requests and documents for it, real or made up.
#pragma once

#include <vector>

#include "bench_options.h"
#include "lancet/models/causal_lm.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/statistics/covariance.h"

namespace lancet::bench {

struct Subject {
  CausalLM model;
  std::vector<PreparedRequest> requests;
  CorpusTokens corpus;
};

/// Throws: as loading a checkpoint, a request file or a corpus does.
Subject make_subject(const BenchOptions& options);

}  // namespace lancet::bench
