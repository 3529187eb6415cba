// Draws lines over axes whose ends and ticks are chosen from the values.
#include <algorithm>
#include <cmath>

#include "lancet/core/strings.h"
#include "lancet/pages/plot.h"
#include "page.h"

namespace lancet {
namespace page {
namespace {

constexpr size_t kMostDots = 60;  // with more dots the line cannot be seen

/// Returns 1, 2 or 5 times a power of ten, about a fifth of the range.
double round_step(double range) {
  const double rough = range / 5, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * 0.999) return factor * power;
  return 10 * power;
}

/// An axis whose ends and ticks were chosen.
class AxisMap {
 public:
  /// `values`: all values that are shown.
  AxisMap(const PlotAxis& axis, const std::vector<double>& values) : axis_(axis) {
    bool any = false;
    for (const double value : values) {
      if (!std::isfinite(value)) continue;
      low_ = any ? std::min(low_, value) : value;
      high_ = any ? std::max(high_, value) : value;
      any = true;
    }
    low_ = axis.low.value_or(low_);
    high_ = axis.high.value_or(high_);
    if (high_ - low_ < 1e-12 * std::max(1.0, std::abs(high_))) {
      const double room = std::max(1e-9, std::abs(high_) * 0.1);
      (axis.low ? high_ : low_) += axis.low ? room : -room;
    }
    choose_ticks();
  }
  /// Sets the positions of the low and the high end.
  void span_over(double from, double to) { from_ = from, to_ = to; }
  double at(double value) const { return from_ + (to_ - from_) * (value - low_) / (high_ - low_); }
  const std::vector<std::pair<double, std::string>>& ticks() const { return ticks_; }
  std::string text(double value) const {
    return short_number(axis_.numbers == AxisNumbers::kPercent ? 100 * value : value);
  }

 private:
  void choose_ticks() {
    ticks_ = axis_.ticks;
    if (!ticks_.empty()) return;
    const double step = round_step(high_ - low_);
    if (!axis_.low) low_ = std::floor(low_ / step + 1e-9) * step;
    if (!axis_.high) high_ = std::ceil(high_ / step - 1e-9) * step;
    for (double k = std::ceil(low_ / step - 1e-9); k * step <= high_ + 1e-9 * step; ++k)
      ticks_.emplace_back(k * step, text(k * step));
  }

  const PlotAxis& axis_;
  double low_ = 0, high_ = 1, from_ = 0, to_ = 1;
  std::vector<std::pair<double, std::string>> ticks_;
};

struct Axes {
  AxisMap x, y;
};

std::string grid(const PlotFrame& frame, const Axes& axes, double left, double bottom) {
  std::string out;
  const double right = frame.width - 16;
  for (const auto& [value, text] : axes.y.ticks()) {
    const std::string y = fixed(axes.y.at(value), 1);
    out += cat("<line class=\"p-grid\" x1=\"", fixed(left, 1), "\" y1=\"", y, "\" x2=\"", fixed(right, 1), "\" y2=\"",
               y, "\"/>\n", svg_text({left - 7, axes.y.at(value) + 4, "end"}, text));
  }
  for (const auto& [value, text] : axes.x.ticks()) {
    const double x = axes.x.at(value), half = text_width(text) / 2;
    const std::string_view anchor = x - half < 0 ? "start" : x + half > frame.width ? "end" : "middle";
    out += svg_text({x, bottom + 17, anchor}, text);
  }
  return out + svg_text({right, bottom + 34, "end", "p-label"}, frame.x.label);
}

/// Draws a line with gaps, and its dots if they are not too many.
std::string drawn(const Axes& axes, const PlotSeries& series) {
  const bool is_accent = series.look == SeriesLook::kAccent;
  const std::string note = escaped(series.note.empty() ? series.name : series.note);
  std::string path, dots;
  bool is_down = false;
  for (size_t i = 0; i < series.x.size(); ++i) {
    const bool shows = std::isfinite(series.y[i]);
    if (shows) {
      const std::string x = fixed(axes.x.at(series.x[i]), 1), y = fixed(axes.y.at(series.y[i]), 1);
      path += cat(is_down ? "L" : "M", x, ",", y);
      dots += cat("<circle class=\"p-dot\" cx=\"", x, "\" cy=\"", y, "\" r=\"", is_accent ? 4 : 2.6, "\"><title>", note,
                  ": ", axes.y.text(series.y[i]), "</title></circle>\n");
    }
    is_down = shows;
  }
  return cat("<g class=\"p-series ", is_accent ? "accent" : "muted", "\"><title>", note, "</title>\n",
             path.empty() ? "" : cat("<path class=\"p-line\" d=\"", path, "\"/>\n"),
             series.x.size() > kMostDots ? "" : dots, "</g>\n");
}

}  // namespace
}  // namespace page

std::string line_plot(const PlotFrame& frame, std::span<const PlotSeries> series) {
  std::vector<double> xs, ys;
  for (const PlotSeries& one : series) {
    xs.insert(xs.end(), one.x.begin(), one.x.end());
    ys.insert(ys.end(), one.y.begin(), one.y.end());
  }
  page::Axes axes{{frame.x, xs}, {frame.y, ys}};
  const page::SvgFrame outside{frame.title, frame.subtitle, frame.width};
  const double label = page::below_heading(outside) + 18, bottom = frame.height - 37;
  double widest = 0;
  for (const auto& [value, text] : axes.y.ticks()) widest = std::max(widest, page::text_width(text));
  const double left = widest + 10;
  axes.x.span_over(left, frame.width - 16);
  axes.y.span_over(bottom, label + 14);
  std::string body =
      page::svg_text({2, label, "start", "p-label"}, frame.y.label) + page::grid(frame, axes, left, bottom);
  for (const PlotSeries& one : series) body += page::drawn(axes, one);
  return page::svg_document(outside, frame.height, body);
}

}  // namespace lancet
