// Reads the escapes of a text in quotes.
#pragma once

#include <string>
#include <string_view>

namespace lancet {

/// Applies Python's rules, which Jinja uses for texts: \n, \x41, \u00e9, and so on; an unknown escape stays as it is.
/// Throws: std::invalid_argument with the problem.
std::string read_jinja_literal(std::string_view inside);

}  // namespace lancet
