// Second moments of MLP keys over text: C_l = E[k k^T], un-centred, one forward pass for all layers.
// Source: ROME (arXiv 2202.05262, appendix), as MEMIT uses it: tokens of every document, BOS included.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lancet/edit/corpus.h"
#include "lancet/models/causal_lm.h"

namespace lancet {

/// One layer's statistics.
struct Covariance {
  Tensor moment_FF;  ///< E[k k^T], f64, on the layer's solve device
  int64_t tokens = 0;
};

/// The forward pass: one Covariance per layer of `layers` (ascending). Stops behind the last layer's keys.
std::vector<Covariance> collect_covariances(const CausalLM& model, const CorpusTokens& corpus,
                                            std::span<const int64_t> layers);

}  // namespace lancet
