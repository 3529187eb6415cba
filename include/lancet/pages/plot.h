// Plots as files: SVG with axes, labels and a title for screen readers. Colours follow the reader's light or dark
// theme. A mark shows what it stands for when the mouse points at it. The plots in HTML pages are made by the pages'
// script instead (src/pages/assets/plots.js).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lancet {

enum class AxisNumbers { kPlain, kPercent };  ///< kPercent: 0.5 is shown as 50

struct PlotAxis {
  std::string label = {};
  AxisNumbers numbers = AxisNumbers::kPlain;
  std::optional<double> low = {}, high = {};               ///< nullopt: taken from the values
  std::vector<std::pair<double, std::string>> ticks = {};  ///< empty: round numbers
};

struct PlotFrame {
  std::string title = {};
  std::string subtitle = {};  ///< empty: none
  PlotAxis x = {}, y = {};
  double width = 400, height = 270;
};

enum class SeriesLook { kAccent, kMuted };  ///< kMuted: one of many background lines

struct PlotSeries {
  std::string name = {};
  std::vector<double> x = {}, y = {};  ///< equally long; a y that is not finite is a gap
  std::string note = {};               ///< shown instead of the name when the mouse points at the line; empty: the name
  SeriesLook look = SeriesLook::kAccent;
};

/// Returns a plot of lines with dots. Later series are drawn on top.
std::string line_plot(const PlotFrame& frame, std::span<const PlotSeries> series);

struct HeatMap {
  std::string title = {};
  std::string subtitle = {};                         ///< empty: none
  std::vector<std::string> rows = {}, columns = {};  ///< labels; at least one each
  std::vector<double> values = {};                   ///< rows x columns, row by row; not finite: an empty cell
};

/// Returns a heat map. The largest magnitude has the strongest colour; negative values have a second colour. Throws:
/// ConfigError when the number of values is not rows x columns.
std::string heat_map(const HeatMap& map);

}  // namespace lancet
