// Finds the key that a misspelt key probably means.
#pragma once

#include <span>
#include <string>

namespace lancet {

/// Returns the known key that `key` probably is a misspelling of; empty if there is none. Differences in case, and
/// blanks or dashes in place of underscores, do not count.
std::string meant_key(const std::string& key, std::span<const std::string> known);

}  // namespace lancet
