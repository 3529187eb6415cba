// The option of a solve's weight, which several methods have under their own names.
#pragma once

#include "lancet/spec/values_spec.h"

namespace lancet {

inline constexpr std::string_view kShareRule =
    "chosen for each layer so that at least half of the requests, each edited alone, would get this share of their "
    "residual";

/// A weight of a solve that is a number, {realised_share: A}, or auto.
constexpr NumberOption solve_weight(std::string_view key, std::string_view meaning, std::string_view methods,
                                    double share) {
  return {{.key = key, .meaning = meaning, .methods = methods, .affects = Affects::kChosenState},
          {.min = 1e-300},
          {},
          kTriedFar,
          kShareRule,
          "realised_share",
          share};
}

}  // namespace lancet
