// Writes and reads numbers as Python does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lancet {

/// Computes repr(): the shortest text that is read as the same number, "0.1", "1e+16", "nan".
std::string python_float_text(double real);

/// Computes int(text, base); nullopt for ValueError, or beyond 64 bits.
std::optional<int64_t> read_python_integer(std::string_view text, int base);

/// Computes float(text); nullopt for ValueError.
std::optional<double> read_python_float(std::string_view text);

}  // namespace lancet
