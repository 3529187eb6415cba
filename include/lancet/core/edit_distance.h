// How far two words are apart.
#pragma once

#include <cstddef>
#include <string_view>

namespace lancet {

/// Levenshtein distance: letters that are left out, put in, or others.
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace lancet
