// One .npy file with a list of numbers, as numpy.save writes it. Source of the format: numpy, lib/format.py.
#pragma once

#include <filesystem>
#include <vector>

namespace lancet {

/// Throws: ConfigError for a file that cannot be read, and for anything but a one-dimensional array of f64 ('<f8').
std::vector<double> read_npy_numbers(const std::filesystem::path& path);

}  // namespace lancet
