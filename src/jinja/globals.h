// Functions that every template has.
#pragma once

#include <optional>
#include <string>

#include "operations.h"

namespace lancet {

/// range, dict, namespace, raise_exception, strftime_now; nullopt: none of the name.
std::optional<JinjaValue> find_global(JinjaRun& run, const std::string& name);

}  // namespace lancet
