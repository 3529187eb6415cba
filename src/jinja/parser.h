// Turns a template's text into a tree, whose names and scopes are not resolved yet.
#pragma once

#include <string_view>

#include "nodes.h"

namespace lancet {

/// Throws: JinjaError.
JinjaBody parse_jinja(std::string_view source);

}  // namespace lancet
