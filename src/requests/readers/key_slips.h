// Keys that are another one but for a slip.
#pragma once

#include <span>
#include <string>

namespace lancet {

/// The known key that a slip made `key` of; empty where it is another word. Case, and blanks or dashes for underscores,
/// are no difference.
std::string meant_key(const std::string& key, std::span<const std::string> known);

}  // namespace lancet
