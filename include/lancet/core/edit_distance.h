// The edit distance of two words.
#pragma once

#include <cstddef>
#include <string_view>

namespace lancet {

/// Returns the Levenshtein distance: the number of bytes that are removed, added or replaced.
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace lancet
