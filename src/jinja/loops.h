// The variable `loop` in a for loop.
#pragma once

#include <optional>
#include <string>

#include "operations.h"

namespace lancet {

/// Returns the next item, which becomes the current one; nullopt at the end of the loop.
std::optional<JinjaValue> advance_loop(JinjaRun& run, JinjaLoop& loop);
int64_t loop_length(JinjaRun& run, JinjaLoop& loop);
/// Returns loop.name; nullopt if there is no such attribute.
std::optional<JinjaValue> loop_attribute(JinjaRun& run, const JinjaValue& loop, const std::string& name);
/// Calls loop(items) of a recursive loop.
JinjaValue call_loop(JinjaRun& run, const JinjaValue& loop, const JinjaArguments& arguments);

}  // namespace lancet
