// Where each name of a template has its value. Jinja decides that before a template runs: a loop's body, a macro, a
// block that is set, `with` and a filter block have scopes of their own, `if` has none; what is set within a scope is
// not seen outside, and begins with the value that it has outside.
// Source: Jinja's documentation, "Assignments" and "Scoping Behavior".
#pragma once

#include "nodes.h"

namespace lancet {

/// Gives each name its place. Throws: JinjaError, also for a filter or a test that there is none of, outside of `if`.
JinjaTree resolve_names(JinjaBody body);

}  // namespace lancet
