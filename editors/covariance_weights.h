// How much the statistics weigh against the requests: A = lambda C + nu I, for methods that take both.
#pragma once

#include "lancet/core/config_section.h"
#include "lancet/edit/editor.h"

namespace lancet {

struct CovarianceWeights {
  double covariance = 15000;  ///< lambda; default: the published Llama configurations of MEMIT
  double identity = 0;        ///< nu (update_norm_lambda of unified-model-editing)
};

/// `covariance_weight`, `identity_weight`, over a method's own defaults.
CovarianceWeights parse_covariance_weights(ConfigSection& editor, CovarianceWeights defaults = {});

/// L of L L^T = A / lambda, [F, F]. Only within EditContext::solve, as covariance_factor.
Tensor weighted_factor(const EditContext& context, int64_t layer, const CovarianceWeights& weights);

}  // namespace lancet
