// A table of numbers as coloured cells: SVG that is readable on a light and on a dark page.
#pragma once

#include <string>
#include <vector>

namespace lancet {

struct HeatMap {
  std::string title;
  std::string subtitle;
  std::vector<std::string> rows;            ///< labels, from the top
  std::vector<std::vector<double>> values;  ///< by row: one for each column, which are numbered from 0
  std::string columns;                      ///< what they are
  std::string value;                        ///< what the numbers are
};

/// Positive numbers in one colour and negative ones in another, the stronger the larger beside the largest of all.
std::string to_svg(const HeatMap& map);

}  // namespace lancet
