// The axes that line and scatter plots stand on.
#pragma once

#include <string>

#include "svg.h"

namespace lancet::page {

/// A plot with two axes under way: the heading and the grid are drawn first, the marks by the caller.
class AxesPlot {
 public:
  AxesPlot(const PlotFrame& frame, std::span<const double> xs, std::span<const double> ys);

  const AxisMap& x() const { return x_; }
  const AxisMap& y() const { return y_; }
  double left() const { return left_; }
  double right() const { return right_; }

  /// Draws a series: its band, its line, and its dots where there are not too many.
  std::string band(const PlotSeries& series) const;
  std::string line(const PlotSeries& series, std::string_view kind) const;
  std::string dots(const PlotSeries& series, double radius) const;

  std::string finish(const std::string& marks, std::span<const LegendEntry> legend) const;

 private:
  std::string grid() const;

  const PlotFrame& frame_;
  AxisMap x_, y_;
  std::string heading_;
  double left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;
};

}  // namespace lancet::page
