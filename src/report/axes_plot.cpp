#include "axes_plot.h"

#include <algorithm>
#include <cmath>

#include "lancet/core/strings.h"

namespace lancet {
namespace page {
namespace {

constexpr size_t kMostDots = 60;  // more make a caterpillar of the line

std::string place(double x, double y) { return cat(fixed(x, 1), ",", fixed(y, 1)); }

}  // namespace

AxesPlot::AxesPlot(const PlotFrame& frame, std::span<const double> xs, std::span<const double> ys)
    : frame_(frame), x_(frame.x, xs), y_(frame.y, ys) {
  double y = 0;
  heading_ = svg_heading(frame, y);
  if (!frame.y.label.empty()) {
    y += 18;
    heading_ += svg_text({2, y, "start", "p-label"}, frame.y.label);
  }
  double widest = 0;
  for (const auto& [value, text] : y_.ticks()) widest = std::max(widest, text_width(text));
  top_ = y + 14;
  bottom_ = frame.height - 20 - (frame.x.label.empty() ? 0 : 17);
  left_ = widest + 10;
  right_ = frame.width - 16;
  x_.span_over(left_, right_);
  y_.span_over(bottom_, top_);
}

std::string AxesPlot::grid() const {
  std::string out;
  for (const auto& [value, text] : y_.ticks()) {
    out += svg_line(left_, y_.at(value), right_, y_.at(value));
    out += svg_text({left_ - 7, y_.at(value) + 4, "end"}, text);
  }
  const auto& ticks = x_.ticks();
  for (const auto& [value, text] : ticks) {
    const double x = x_.at(value), half = text_width(text) / 2;
    const std::string_view anchor = x - half < 0 ? "start" : x + half > frame_.width ? "end" : "middle";
    out += svg_text({x, bottom_ + 17, anchor}, text);
  }
  if (!frame_.x.label.empty()) out += svg_text({right_, bottom_ + 34, "end", "p-label"}, frame_.x.label);
  return out;
}

std::string AxesPlot::band(const PlotSeries& series) const {
  if (series.low.empty()) return "";
  std::string upper, lower;
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (!y_.shows(series.low[i]) || !y_.shows(series.high[i])) continue;
    upper += place(x_.at(series.x[i]), y_.at(series.high[i])) + " ";
    lower.insert(0, place(x_.at(series.x[i]), y_.at(series.low[i])) + " ");
  }
  return cat("<polygon class=\"p-band\" points=\"", upper, lower, "\"/>\n");
}

std::string AxesPlot::line(const PlotSeries& series, std::string_view kind) const {
  std::string path;
  bool down = false;
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (!y_.shows(series.y[i])) {
      down = false;
      continue;
    }
    path += cat(down ? "L" : "M", place(x_.at(series.x[i]), y_.at(series.y[i])));
    down = true;
  }
  return path.empty() ? "" : cat("<path class=\"", kind, "\" d=\"", path, "\"/>\n");
}

std::string AxesPlot::dots(const PlotSeries& series, double radius) const {
  if (series.x.size() > kMostDots) return "";
  std::string out;
  for (size_t i = 0; i < series.x.size(); ++i)
    if (y_.shows(series.y[i]))
      out +=
          cat("<circle class=\"p-dot\" cx=\"", fixed(x_.at(series.x[i]), 1), "\" cy=\"", fixed(y_.at(series.y[i]), 1),
              "\" r=\"", radius, "\"><title>", escaped(series.note.empty() ? series.name : series.note), ": ",
              y_.text(series.y[i]), "</title></circle>\n");
  return out;
}

std::string AxesPlot::finish(const std::string& marks, std::span<const LegendEntry> legend) const {
  double y = frame_.height - 4;
  const std::string key = svg_legend(legend, left_, right_ - left_, y);
  return svg_document(frame_, y + 4, heading_ + grid() + marks + key);
}

}  // namespace page

using page::AxesPlot, page::LegendEntry, page::color_class, page::escaped;

std::string line_plot(const PlotFrame& frame, std::span<const PlotSeries> series) {
  std::vector<double> xs, ys;
  for (const PlotSeries& one : series) {
    xs.insert(xs.end(), one.x.begin(), one.x.end());
    for (const std::vector<double>* part : {&one.y, &one.low, &one.high})
      ys.insert(ys.end(), part->begin(), part->end());
  }
  const AxesPlot plot(frame, xs, ys);
  std::vector<LegendEntry> legend;
  std::string marks;
  for (size_t i = 0; i < series.size(); ++i) {
    const PlotSeries& one = series[i];
    const bool muted = one.look == SeriesLook::kMuted, accent = one.look == SeriesLook::kAccent;
    const std::string color = muted ? "muted" : accent ? "accent" : color_class(one.color.value_or(i));
    const std::string kind = one.look == SeriesLook::kDashed ? "p-line p-dashed" : "p-line";
    if (!muted && !accent) legend.push_back({one.name, kind + " " + color});
    marks += cat("<g class=\"p-series ", color, "\"><title>", escaped(one.note.empty() ? one.name : one.note),
                 "</title>\n", plot.band(one), plot.line(one, kind),
                 one.look == SeriesLook::kDashed ? "" : plot.dots(one, accent ? 4 : 2.6), "</g>\n");
  }
  if (legend.size() < 2) legend.clear();
  return plot.finish(marks, legend);
}

std::string scatter_plot(const PlotFrame& frame, std::span<const PlotPoint> points, std::span<const PlotSeries> lines) {
  std::vector<double> xs, ys;
  for (const PlotPoint& point : points) {
    xs.push_back(point.x);
    ys.push_back(point.y);
  }
  const AxesPlot plot(frame, xs, ys);
  std::string marks;
  for (const PlotSeries& line : lines) marks += plot.line(line, "p-front");
  for (const PlotPoint& point : points) {
    const double x = plot.x().at(point.x), y = plot.y().at(point.y);
    const std::string name = page::fitted(point.name, (plot.right() - plot.left()) / 2 - 20);
    const bool to_left = x + 10 + page::text_width(name) > plot.right() + 8;
    marks += cat("<g class=\"p-series ", color_class(point.color), "\"><title>", escaped(point.name), ": ",
                 plot.x().text(point.x), " / ", plot.y().text(point.y), "</title><circle class=\"p-dot\" cx=\"",
                 page::fixed(x, 1), "\" cy=\"", page::fixed(y, 1), "\" r=\"5\"/>",
                 page::svg_text({to_left ? x - 9 : x + 9, y + 4, to_left ? "end" : "start", "p-name"}, name), "</g>\n");
  }
  return plot.finish(marks, {});
}

}  // namespace lancet
