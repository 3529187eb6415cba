// What `loop` says in a for loop.
#pragma once

#include <optional>
#include <string>

#include "operations.h"

namespace lancet {

/// The next item, which becomes the current one; nullopt: the loop is over.
std::optional<JinjaValue> advance_loop(JinjaRun& run, JinjaLoop& loop);
int64_t loop_length(JinjaRun& run, JinjaLoop& loop);
/// loop.name; nullopt: it has nothing of this name.
std::optional<JinjaValue> loop_attribute(JinjaRun& run, const JinjaValue& loop, const std::string& name);
/// loop(items), of a recursive loop.
JinjaValue call_loop(JinjaRun& run, const JinjaValue& loop, const JinjaArguments& arguments);

}  // namespace lancet
