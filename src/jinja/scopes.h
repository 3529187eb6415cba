// Resolves where each name of a template has its value. Jinja decides this before a template runs. A loop's body, a
// macro, a block that is set, `with` and a filter block have their own scopes; `if` has none. What is set in a scope is
// not visible outside, and begins with the value that it has outside. Source: Jinja's documentation, "Assignments" and
// "Scoping Behavior".
#pragma once

#include "nodes.h"

namespace lancet {

/// Gives each name its place. Throws: JinjaError, also for an unknown filter or test outside of `if`.
JinjaTree resolve_names(JinjaBody body);

}  // namespace lancet
