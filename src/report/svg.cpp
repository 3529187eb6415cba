#include "svg.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lancet/core/strings.h"

namespace lancet::page {
namespace {

constexpr double kLetter = 6.6;  // mean width at 12 px of the fonts that readers have

size_t letters_of(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// Bytes of the first n letters.
size_t bytes_of_letters(std::string_view text, size_t n) {
  size_t at = 0;
  while (at < text.size()) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80 && n-- == 0) break;
    ++at;
  }
  return at;
}

/// 1, 2 or 5 times a power of ten, about a fifth of the range.
double round_step(double range) {
  const double rough = range / 5, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * 0.999) return factor * power;
  return 10 * power;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F)
      out += "\xEF\xBF\xBD";
    else
      out += c;
  }
  return out;
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", value == 0 ? 0.0 : value);
  return text;
}

std::string svg_text(const SvgText& place, std::string_view text) {
  return cat("<text class=\"", place.kind, "\" x=\"", fixed(place.x, 1), "\" y=\"", fixed(place.y, 1),
             "\" text-anchor=\"", place.anchor, "\">", escaped(text), "</text>\n");
}

std::string svg_line(double x1, double y1, double x2, double y2) {
  return cat("<line class=\"p-grid\" x1=\"", fixed(x1, 1), "\" y1=\"", fixed(y1, 1), "\" x2=\"", fixed(x2, 1),
             "\" y2=\"", fixed(y2, 1), "\"/>\n");
}

double text_width(std::string_view text) { return kLetter * static_cast<double>(letters_of(text)); }

std::string fitted(const std::string& text, double width) {
  const auto most = static_cast<size_t>(std::max(3.0, width / kLetter));
  const size_t n = letters_of(text);
  if (n <= most) return text;
  const size_t begin = (most - 1) / 2, end = most - 1 - begin;
  return text.substr(0, bytes_of_letters(text, begin)) + "…" + text.substr(bytes_of_letters(text, n - end));
}

std::string svg_document(const PlotFrame& frame, double height, const std::string& body) {
  return cat("<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 ",
             fixed(frame.width, 0), " ", fixed(std::ceil(height), 0), "\">\n<title>", escaped(frame.title),
             frame.subtitle.empty() ? "" : ": ", escaped(frame.subtitle), "</title>\n", body, "</svg>\n");
}

std::string svg_heading(const PlotFrame& frame, double& y) {
  y = 16;
  std::string out = svg_text({2, y, "start", "p-title"}, fitted(frame.title, frame.width * 0.8));
  if (!frame.subtitle.empty()) {
    y += 17;
    out += svg_text({2, y, "start", "p-sub"}, fitted(frame.subtitle, frame.width));
  }
  return out;
}

std::string svg_legend(std::span<const LegendEntry> entries, double left, double width, double& y) {
  std::string out;
  double x = left;
  if (!entries.empty()) y += 18;
  for (const LegendEntry& entry : entries) {
    const std::string name = fitted(entry.name, width - 30);
    const double wide = 24 + text_width(name) + 14;
    if (x > left && x + wide > left + width) {
      x = left;
      y += 17;
    }
    out += cat("<line class=\"", entry.kind, "\" x1=\"", fixed(x, 1), "\" x2=\"", fixed(x + 18, 1), "\" y1=\"",
               fixed(y - 4, 1), "\" y2=\"", fixed(y - 4, 1), "\"/>\n");
    out += svg_text({x + 24, y}, name);
    x += wide;
  }
  return out;
}

std::string color_class(size_t color) { return cat("c", color % 8 + 1); }

AxisMap::AxisMap(const PlotAxis& axis, std::span<const double> values) : axis_(axis) {
  const bool logarithmic = axis.scale == AxisScale::kLogarithmic;
  bool any = false;
  for (const double value : values) {
    if (!std::isfinite(value) || (logarithmic && value <= 0)) continue;
    low_ = any ? std::min(low_, value) : value;
    high_ = any ? std::max(high_, value) : value;
    any = true;
  }
  if (!any) low_ = logarithmic ? 0.1 : 0, high_ = 1;
  low_ = axis.low.value_or(low_);
  high_ = axis.high.value_or(high_);
  if (logarithmic)
    choose_logarithmic();
  else
    choose_linear();
  if (!axis.ticks.empty()) ticks_ = axis.ticks;
}

void AxisMap::choose_linear() {
  const bool free_low = !axis_.low, free_high = !axis_.high;
  if (high_ - low_ < 1e-12 * std::max(1.0, std::abs(high_))) {
    const double room = std::max(1e-9, std::abs(high_) * 0.1);
    (free_low ? low_ : high_) += free_low ? -room : room;
  }
  const double step = round_step(high_ - low_);
  if (axis_.ticks.empty()) {
    if (free_low) low_ = std::floor(low_ / step + 1e-9) * step;
    if (free_high) high_ = std::ceil(high_ / step - 1e-9) * step;
  }
  for (double k = std::ceil(low_ / step - 1e-9); k * step <= high_ + 1e-9 * step; ++k)
    ticks_.emplace_back(k * step, text(k * step));
}

void AxisMap::choose_logarithmic() {
  if (high_ <= low_) high_ = low_ * 1.1;
  const double first = std::floor(std::log10(low_)), last = std::ceil(std::log10(high_));
  const bool fine = std::log10(high_ / low_) < 3;
  for (double power = first; power <= last; ++power)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10, power);
      if ((factor == 1 || fine) && value >= low_ * 0.999 && value <= high_ * 1.001)
        ticks_.emplace_back(value, text(value));
    }
}

double AxisMap::scaled(double value) const { return axis_.scale == AxisScale::kLogarithmic ? std::log(value) : value; }

double AxisMap::at(double value) const {
  return from_ + (to_ - from_) * (scaled(value) - scaled(low_)) / (scaled(high_) - scaled(low_));
}

bool AxisMap::shows(double value) const {
  return std::isfinite(value) && (axis_.scale == AxisScale::kLinear || value > 0);
}

std::string AxisMap::text(double value) const {
  return short_number(axis_.numbers == AxisNumbers::kPercent ? 100 * value : value);
}

}  // namespace lancet::page
