#include "heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr double kCell = 22, kTop = 52, kBottom = 48, kGap = 8, kCharacter = 6.6, kLegend = 110, kLeastGrid = 320;
constexpr int kLegendSteps = 8;
// Cells lie over the page, whose colour they take on as they fade: so both light and dark pages show zero as nothing.
constexpr const char* kStyle =
    "<style>svg{background:#fff;color:#1f2937}.p{fill:#6d28d9}.n{fill:#c2410c}.f{fill:none;stroke:currentColor;"
    "stroke-opacity:.4}@media(prefers-color-scheme:dark){svg{background:#111827;color:#e5e7eb}.p{fill:#a78bfa}"
    ".n{fill:#fb923c}}</style>\n";

std::string number(double value, const char* format) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += ' ';  // XML allows hardly any of them
    else
      out += c;
  }
  return out;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return cat("<text x=\"", number(x, "%.1f"), "\" y=\"", number(y, "%.1f"), "\" text-anchor=\"", anchor, "\">",
             escaped(text), "</text>\n");
}

/// `title` is shown when the cell is pointed at.
std::string cell(double x, double y, double height, double share, const std::string& title) {
  return cat("<rect class=\"", share < 0 ? "n" : "p", "\" x=\"", number(x, "%.1f"), "\" y=\"", number(y, "%.1f"),
             "\" width=\"", kCell, "\" height=\"", height, "\" fill-opacity=\"", number(std::abs(share), "%.3f"), "\">",
             title.empty() ? "" : cat("<title>", escaped(title), "</title>"), "</rect>\n");
}

/// From nothing to the largest number.
std::string legend(double x, double y, double largest, const std::string& value) {
  std::string out = text_at(x, y - 6, "start", value);
  for (int step = 0; step < kLegendSteps; ++step) {
    const double share = 1 - static_cast<double>(step) / (kLegendSteps - 1);
    out += cell(x, y + step * kCell / 2, kCell / 2, share, "");
    if (step % (kLegendSteps - 1) == 0)
      out += text_at(x + kCell + 6, y + step * kCell / 2 + 9, "start", number(share * largest, "%.3g"));
  }
  return out;
}

}  // namespace

std::string to_svg(const HeatMap& map) {
  double largest = 0;
  size_t longest = 0, columns = 0;
  for (const std::vector<double>& row : map.values) {
    columns = std::max(columns, row.size());
    for (const double value : row) largest = std::max(largest, std::abs(value));
  }
  for (const std::string& label : map.rows) longest = std::max(longest, label.size());
  const double left = 16 + kCharacter * static_cast<double>(longest) + kGap;
  const double grid_width = kCell * static_cast<double>(columns);
  const double grid_height = kCell * static_cast<double>(map.rows.size());
  const double legend_height = kCell * (kLegendSteps + 1) / 2;
  const double width = left + std::max(kLeastGrid, grid_width) + 24 + kLegend;
  const double height = kTop + std::max(grid_height, legend_height) + kBottom;
  std::string out =
      cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", number(width, "%.0f"), " ",
          number(height, "%.0f"), "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"currentColor\">\n", kStyle,
          text_at(16, 20, "start", map.title), text_at(16, 38, "start", map.subtitle));
  for (size_t r = 0; r < map.rows.size(); ++r) {
    const double y = kTop + kCell * static_cast<double>(r);
    out += text_at(left - kGap, y + kCell / 2 + 4, "end", map.rows[r]);
    for (size_t c = 0; c < map.values[r].size(); ++c) {
      const double value = map.values[r][c];
      out += cell(left + kCell * static_cast<double>(c), y, kCell, largest > 0 ? value / largest : 0,
                  cat(map.rows[r], ", ", map.columns, " ", c, ": ", number(value, "%.4f")));
    }
  }
  out += cat("<rect class=\"f\" x=\"", number(left, "%.1f"), "\" y=\"", kTop, "\" width=\"", grid_width, "\" height=\"",
             grid_height, "\"/>\n");
  const size_t every = columns > 40 ? 10 : columns > 16 ? 5 : 1;
  for (size_t c = 0; c < columns; c += every)
    out += text_at(left + kCell * (static_cast<double>(c) + 0.5), kTop + grid_height + 16, "middle", cat(c));
  out += text_at(left + grid_width / 2, kTop + grid_height + 34, "middle", map.columns);
  out += legend(left + grid_width + 24, kTop, largest, map.value);
  return out + "</svg>\n";
}

}  // namespace lancet
