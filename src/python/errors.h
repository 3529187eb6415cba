// Errors of the library as exceptions of Python: lancet.errors has one class for each, with the code of the program.
// And the texts that they and others say.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace lancet::python {

/// Makes lancet's errors, and what the system or torch throws, come out as those classes from here on.
void register_errors();

/// Text as Python has it. Bytes that are no UTF-8, of a path for example, become U+FFFD.
nanobind::str to_str(std::string_view text);

}  // namespace lancet::python
