// A text in quotes: what its escapes stand for.
#pragma once

#include <string>
#include <string_view>

namespace lancet {

/// Python's rules, by which Jinja reads texts: \n, \x41, \u00e9, and so on; an unknown escape stays. Throws:
/// std::invalid_argument with what is wrong.
std::string read_jinja_literal(std::string_view inside);

}  // namespace lancet
