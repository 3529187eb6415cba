#include "table.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "lancet/core/strings.h"

namespace lancet::cli {
namespace {

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

size_t characters(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

}  // namespace

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], characters(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - characters(row[i]), ' ');
      line += (i == 0 ? "  " : "   ") + (i == 0 ? row[i] + padding : padding + row[i]);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  return out;
}

std::string percent_text(std::optional<double> share) {
  if (!share) return "n/a";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", 100.0 * *share);
  return text.data();
}

std::string metric_text(const MetricRow& row, std::optional<double> mean) {
  if (!mean || row.unit == Unit::kShare || row.unit == Unit::kDifference) return percent_text(mean);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", *mean);
  return cat(text.data(), " ", unit_name(row.unit));
}

std::string peaks_text(const PeakBytes& peaks) {
  std::vector<std::string> parts;
  for (const auto& [device, bytes] : peaks) parts.push_back(cat(device, " ", bytes_text(static_cast<uint64_t>(bytes))));
  return join(parts);
}

std::string one_line(std::string text, size_t width) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (characters(text) <= width) return text;
  size_t end = 0;
  for (size_t count = 0; end < text.size(); ++end)
    if (begins_character(text[end]) && ++count == width) break;
  return text.substr(0, end) + "…";
}

}  // namespace lancet::cli
