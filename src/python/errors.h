// Turns errors of the library into exceptions of Python: lancet.errors has a class for each, with the exit code of the
// program. Also converts texts.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace lancet::python {

/// From now on, lancet's errors, and those of the system and of torch, become these classes.
void register_errors();

/// Returns a text as Python's str. Bytes that are not UTF-8, for example of a path, become U+FFFD.
nanobind::str to_str(std::string_view text);

}  // namespace lancet::python
