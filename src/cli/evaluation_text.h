// Tables of what was measured.
#pragma once

#include <string>

#include "lancet/eval/costs.h"

namespace lancet::cli {

/// A row for each cost, before and after; empty when there is none.
std::string costs_text(const CostReport& before, const CostReport& after);

}  // namespace lancet::cli
