// Figures and texts as people read them, everywhere alike: counts and shares in sentences, texts in tables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lancet {

/// "1,200".
std::string count_text(size_t count);

/// "1 request", "1,200 requests".
std::string counted(size_t count, std::string_view what);

/// "54.5 %".
std::string percent(double share);

/// Three digits: "0.00412", "12.3", "1.5e+09".
std::string short_number(double number);

/// "54.5 %, expected at least 90 %": a share that missed its threshold, with as many digits as that takes.
std::string shortfall_text(double share, double threshold);

/// A text of the user's or the model's as csv_field() has it; after a ' where a spreadsheet would run it as a formula
/// (it begins with = + - @, a tab or a carriage return).
std::string csv_text(std::string_view text);

}  // namespace lancet
