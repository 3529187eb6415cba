// The numbers that JSON cannot say, in a config.json: Python's json writes and reads them bare, transformers since its
// version 5 as objects.
#pragma once

#include <string>
#include <string_view>

namespace lancet {

/// JSON with each bare Infinity, -Infinity and NaN as {"__float__": "Infinity"}, so that strict readers take it. Text
/// without any, also what is no JSON, stays as it is.
std::string bare_floats_as_objects(std::string_view json);

/// The way back: each {"__float__": "Infinity"} bare, in JSON of whatever layout.
std::string objects_as_bare_floats(std::string_view json);

}  // namespace lancet
