// Parts of a text, counted.
#pragma once

#include <string>

namespace lancet::testing {

/// How many times a part stands in a text.
inline size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace lancet::testing
