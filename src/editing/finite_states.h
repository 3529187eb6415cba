#pragma once

#include <span>

#include "lancet/models/causal_lm.h"
#include "lancet/requests/prepared_request.h"

namespace lancet {

/// Throws: NumericError that names the first request whose row of `value_NX`, which is of `site`, is not finite.
void check_finite(const CausalLM& model, std::span<const PreparedRequest> requests, HookSite site,
                  const Tensor& value_NX);

}  // namespace lancet
