// What plots as files share: text, numbers, the frame.
#pragma once

#include <string>
#include <string_view>

namespace lancet::page {

/// Escapes text for HTML and XML alike, also within quotes. Control characters, which neither may hold, become U+FFFD.
std::string escaped(std::string_view text);

std::string fixed(double value, int digits);
/// Formats the number with at most four digits, no trailing zeros: "0.05", "12.5", "1.2e+06".
std::string short_number(double value);

/// A text in a plot; `kind` is its class.
struct SvgText {
  double x = 0, y = 0;
  std::string_view anchor = "start";
  std::string_view kind = "p-tick";
};
std::string svg_text(const SvgText& place, std::string_view text);
/// Estimates the width of the usual letters at 12 px: a guess, since the reader's font is not known.
double text_width(std::string_view text);
/// Cuts the text in the middle with "…", so that it is at most `width` wide.
std::string fitted(const std::string& text, double width);

/// A plot's head and size.
struct SvgFrame {
  const std::string& title;
  const std::string& subtitle;
  double width = 0;
};
/// The whole file: its colours, a title for screen readers, the heading, `body`.
std::string svg_document(const SvgFrame& frame, double height, const std::string& body);
/// Place below the heading, where what follows may begin.
double below_heading(const SvgFrame& frame);

}  // namespace lancet::page
