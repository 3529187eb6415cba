// Plots as files: SVG with axes, labels and a title for screen readers, light or dark as the reader has it.
// What a mark is shows when it is pointed at. Plots of pages are made by their script (src/pages/assets/plots.js).
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
  std::optional<double> low = {}, high = {};               ///< nullopt: by the values
  std::vector<std::pair<double, std::string>> ticks = {};  ///< empty: round numbers
};

struct PlotFrame {
  std::string title = {};
  std::string subtitle = {};  ///< empty: none
  PlotAxis x = {}, y = {};
  double width = 400, height = 270;
};

enum class SeriesLook { kAccent, kMuted };  ///< kMuted: one of many

struct PlotSeries {
  std::string name = {};
  std::vector<double> x = {}, y = {};  ///< equally long; a y that is not finite is a gap
  std::string note = {};               ///< shown instead of the name when the line is pointed at; empty: the name
  SeriesLook look = SeriesLook::kAccent;
};

/// Lines with dots; later ones lie on top.
std::string line_plot(const PlotFrame& frame, std::span<const PlotSeries> series);

struct HeatMap {
  std::string title = {};
  std::string subtitle = {};                         ///< empty: none
  std::vector<std::string> rows = {}, columns = {};  ///< labels; at least one each
  std::vector<double> values = {};                   ///< rows x columns, row by row; not finite: an empty cell
};

/// The largest magnitude is the strongest colour; negative values have another one.
/// Throws: ConfigError when there are not rows x columns values.
std::string heat_map(const HeatMap& map);

}  // namespace lancet
