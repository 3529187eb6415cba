// Draws cells with colours as strong as their values.
#include <algorithm>
#include <cmath>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/pages/plot.h"
#include "page.h"

namespace lancet {

using page::escaped, page::fixed, page::fitted, page::svg_text, page::text_width;

namespace {

/// Returns n if only every n-th label has room.
size_t label_step(double wanted, double cell) {
  return static_cast<size_t>(std::max(1.0, std::ceil(wanted / std::max(cell, 1e-9))));
}

std::string heat_cell(const HeatMap& map, size_t index, double strongest) {
  const double value = map.values[index];
  const std::string& row = map.rows[index / map.columns.size()];
  const std::string& column = map.columns[index % map.columns.size()];
  const double share = strongest > 0 && std::isfinite(value) ? std::abs(value) / strongest : 0;
  return cat("class=\"", value < 0 ? "p-cell c2" : "p-cell c1", "\" fill-opacity=\"", fixed(share, 3), "\"><title>",
             escaped(row), ", ", escaped(column), ": ", std::isfinite(value) ? page::short_number(value) : "none",
             "</title></rect>\n");
}

}  // namespace

std::string heat_map(const HeatMap& map) {
  const size_t n_rows = map.rows.size(), n_columns = map.columns.size();
  if (n_rows == 0 || n_columns == 0 || map.values.size() != n_rows * n_columns)
    throw ConfigError(
        cat("heat map: ", map.title, ": expected ", n_rows, " x ", n_columns, " values, got ", map.values.size()));
  page::SvgFrame frame{map.title, map.subtitle, 400};
  double widest = 0, strongest = 0, widest_column = 0, y = page::below_heading(frame) + 14;
  for (const std::string& row : map.rows) widest = std::max(widest, text_width(row));
  for (const std::string& column : map.columns) widest_column = std::max(widest_column, text_width(column));
  for (const double value : map.values)
    if (std::isfinite(value)) strongest = std::max(strongest, std::abs(value));
  std::string out;
  const double left = std::min(widest, 150.0) + 10;
  const double wide = std::clamp((frame.width - left - 8) / static_cast<double>(n_columns), 3.0, 40.0);
  const double high = std::clamp(320 / static_cast<double>(n_rows), 10.0, 20.0);
  frame.width = std::max(frame.width, left + wide * static_cast<double>(n_columns) + 8);
  for (size_t i = 0; i < map.values.size(); ++i)
    out += cat("<rect x=\"", fixed(left + wide * static_cast<double>(i % n_columns), 1), "\" y=\"",
               fixed(y + high * static_cast<double>(i / n_columns), 1), "\" width=\"", fixed(wide, 1), "\" height=\"",
               fixed(high, 1), "\" ", heat_cell(map, i, strongest));
  const size_t row_step = label_step(11, high), column_step = label_step(widest_column + 6, wide);
  for (size_t row = 0; row < n_rows; row += row_step)
    out +=
        svg_text({left - 6, y + high * (static_cast<double>(row) + 0.5) + 4, "end"}, fitted(map.rows[row], left - 8));
  y += high * static_cast<double>(n_rows) + 16;
  for (size_t column = 0; column < n_columns; column += column_step)
    out += svg_text({left + wide * (static_cast<double>(column) + 0.5), y, "middle"}, map.columns[column]);
  out += svg_text({left, y + 20, "start", "p-label"}, cat("strongest colour: ", page::short_number(strongest)));
  return page::svg_document(frame, y + 28, out);
}

}  // namespace lancet
