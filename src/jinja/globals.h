// The functions that every template has.
#pragma once

#include <optional>
#include <string>

#include "operations.h"

namespace lancet {

/// Returns range, dict, namespace, raise_exception or strftime_now; nullopt for other names.
std::optional<JinjaValue> find_global(JinjaRun& run, const std::string& name);

}  // namespace lancet
