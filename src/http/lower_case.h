// Names of headers and hosts, which are the same in capitals.
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
