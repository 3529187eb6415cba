// Tables of what was measured.
#pragma once

#include <string>

#include "lancet/eval/side_effects.h"

namespace lancet::cli {

/// A row for each cost, before and after; empty when there is none.
std::string side_effects_text(const SideEffectReport& before, const SideEffectReport& after);

}  // namespace lancet::cli
