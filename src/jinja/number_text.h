// Numbers as Python writes and reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lancet {

/// repr(): the shortest text that reads back, "0.1", "1e+16", "nan".
std::string python_float_text(double real);

/// int(text, base). nullopt: ValueError, or beyond 64 bits.
std::optional<int64_t> read_python_integer(std::string_view text, int base);

/// float(text). nullopt: ValueError.
std::optional<double> read_python_float(std::string_view text);

}  // namespace lancet
