// What the plots share: text, numbers, and axes that map values to places.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/report/plot.h"

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
std::string svg_line(double x1, double y1, double x2, double y2);
/// Estimates the width of the usual letters at 12 px: a guess, since the reader's font is not known.
double text_width(std::string_view text);
/// Cuts the text in the middle with "…", so that it is at most `width` wide.
std::string fitted(const std::string& text, double width);

/// The opening tag with title and description for screen readers, `body`, the closing one.
std::string svg_document(const PlotFrame& frame, double height, const std::string& body);
/// Title and subtitle; `y` is moved below them.
std::string svg_heading(const PlotFrame& frame, double& y);

struct LegendEntry {
  std::string name;
  std::string kind;  ///< classes of its line
};
/// Draws the legend in rows of at most `width`; `y` is moved below it.
std::string svg_legend(std::span<const LegendEntry> entries, double left, double width, double& y);

/// "c3": the class of a colour, which come round after eight.
std::string color_class(size_t color);

/// An axis with its ends and ticks chosen.
class AxisMap {
 public:
  /// `values`: all that is to be shown.
  AxisMap(const PlotAxis& axis, std::span<const double> values);
  /// Places of low and high.
  void span_over(double from, double to) { from_ = from, to_ = to; }
  double at(double value) const;
  bool shows(double value) const;
  const std::vector<std::pair<double, std::string>>& ticks() const { return ticks_; }
  std::string text(double value) const;

 private:
  double scaled(double value) const;
  void choose_linear();
  void choose_logarithmic();

  const PlotAxis& axis_;
  double low_ = 0, high_ = 1, from_ = 0, to_ = 1;
  std::vector<std::pair<double, std::string>> ticks_;
};

}  // namespace lancet::page
