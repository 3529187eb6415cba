// Converts names of headers and hosts to lower case, because they do not depend on case.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace lancet {

inline std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace lancet
