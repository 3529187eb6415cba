// From a template's text to its tree, names and scopes not yet looked up.
#pragma once

#include <string_view>

#include "nodes.h"

namespace lancet {

/// Throws: JinjaError.
JinjaBody parse_jinja(std::string_view source);

}  // namespace lancet
