// Tables of what was measured.
#pragma once

#include <string>

#include "lancet/eval/evaluate.h"
#include "lancet/eval/side_effects.h"

namespace lancet::cli {

/// A row for each metric of `after`, which has the last column but one; empty when there is none.
std::string before_after_text(const Evaluation& before, const Evaluation& after, const char* after_head = "after");

/// A row for each cost, before and after; empty when there is none.
std::string side_effects_text(const SideEffectReport& before, const SideEffectReport& after);

}  // namespace lancet::cli
