// Formats numbers and texts with a width, signs and separators, as Python does.
#pragma once

#include <string>
#include <string_view>

#include "operations.h"

namespace lancet {

/// The part of a format after % or :.
struct JinjaFormat {
  std::string fill = " ";
  char align = '\0';  ///< one of < > ^ =, or none
  char sign = '-';    ///< - + or a space
  bool is_alternate = false;
  bool pads_zeros = false;
  int64_t width = 0;
  char grouping = '\0';    ///< , or _, or none
  int64_t precision = -1;  ///< -1: none
  char type = '\0';
};

/// Returns the digits of a number with sign, prefix and padding. `type`: d b o x X e E f F g G %.
std::string formatted_number(JinjaRun& run, const JinjaValue& value, const JinjaFormat& format);
/// Returns the text with its width; aligned to the left unless `align` says otherwise.
std::string padded_text(JinjaRun& run, std::string text, const JinjaFormat& format);

}  // namespace lancet
