// Plots as SVG text: axes, ticks, labels, a legend, and a title for screen readers. Colours are CSS variables of the
// page that a plot stands in; standalone_svg() brings them along. What a mark is shows when it is pointed at.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lancet {

enum class AxisScale { kLinear, kLogarithmic };
enum class AxisNumbers { kPlain, kPercent };  ///< kPercent: 0.5 is shown as 50

struct PlotAxis {
  std::string label = {};
  AxisNumbers numbers = AxisNumbers::kPlain;
  AxisScale scale = AxisScale::kLinear;                    ///< kLogarithmic: values that are not positive are left out
  std::optional<double> low = {}, high = {};               ///< nullopt: by the values
  std::vector<std::pair<double, std::string>> ticks = {};  ///< empty: round numbers
};

struct PlotFrame {
  std::string title = {};
  std::string subtitle = {};  ///< empty: none
  PlotAxis x = {}, y = {};
  double width = 400, height = 270;  ///< size without the legend
};

/// kNormal: a colour of its own, and a place in the legend; the others are among many.
enum class SeriesLook { kNormal, kDashed, kAccent, kMuted };

struct PlotSeries {
  std::string name = {};
  std::vector<double> x = {}, y = {};       ///< equally long; a y that is not finite is a gap
  std::vector<double> low = {}, high = {};  ///< edges of a band around the line; empty: none
  std::string note = {};                    ///< shown instead of the name when the line is pointed at; empty: the name
  std::optional<size_t> color = {};         ///< nullopt: by its place
  SeriesLook look = SeriesLook::kNormal;
};

/// Lines with dots; later ones lie on top.
std::string line_plot(const PlotFrame& frame, std::span<const PlotSeries> series);

struct PlotPoint {
  std::string name = {};
  double x = 0, y = 0;
  size_t color = 0;
};

/// Named points, and lines without dots behind them (a Pareto front).
std::string scatter_plot(const PlotFrame& frame, std::span<const PlotPoint> points,
                         std::span<const PlotSeries> lines = {});

struct PlotBar {
  std::string label = {};
  double value = 0;       ///< zero or more
  std::string text = {};  ///< the value with its unit
  size_t color = 0;
};

/// Lying bars, the first on top. Of the frame: title, subtitle and width.
std::string bar_plot(const PlotFrame& frame, std::span<const PlotBar> bars);

struct HeatMap {
  std::string title = {};
  std::string subtitle = {};                         ///< empty: none
  std::vector<std::string> rows = {}, columns = {};  ///< labels; at least one each
  std::vector<double> values = {};                   ///< rows x columns, row by row; not finite: an empty cell
};

/// The largest magnitude is the strongest colour; negative values have another one.
/// Throws: ConfigError when there are not rows x columns values.
std::string heat_map(const HeatMap& map);

/// A plot as a file of its own: with its colours, light or dark as the reader has it.
std::string standalone_svg(std::string_view plot);

}  // namespace lancet
