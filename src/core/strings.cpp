#include "lancet/core/strings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "lancet/core/edit_distance.h"

namespace lancet {
namespace {

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t") + 1 - begin));
}

std::string scaled_text(uint64_t bytes, double base, const std::array<const char*, 5>& units) {
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= base && unit + 1 < units.size()) {
    value /= base;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text.data();
}

}  // namespace

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string shape_text(std::span<const int64_t> shape) {
  std::vector<std::string> parts;
  for (const int64_t size : shape) parts.push_back(std::to_string(size));
  return "[" + join(parts) + "]";
}

std::string bytes_text(uint64_t bytes) { return scaled_text(bytes, 1000.0, {"B", "kB", "MB", "GB", "TB"}); }

std::string binary_bytes_text(uint64_t bytes) { return scaled_text(bytes, 1024.0, {"B", "KiB", "MiB", "GiB", "TiB"}); }

std::optional<int64_t> parse_whole_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::optional<int64_t> parse_bytes(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 9> kUnits{{{"B", 1},
                                                                              {"kB", 1e3},
                                                                              {"MB", 1e6},
                                                                              {"GB", 1e9},
                                                                              {"TB", 1e12},
                                                                              {"KiB", 0x1p10},
                                                                              {"MiB", 0x1p20},
                                                                              {"GiB", 0x1p30},
                                                                              {"TiB", 0x1p40}}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !(number > 0)) return std::nullopt;
  const std::string unit = trimmed(text.substr(static_cast<size_t>(end - text.data())));
  for (const auto& [name, factor] : kUnits)
    if (unit == name && number * factor >= 1 && number * factor < 0x1p62) return std::llround(number * factor);
  return std::nullopt;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

std::string excerpt(std::string_view text, size_t longest_bytes) {
  if (text.size() <= longest_bytes) return std::string(text);
  size_t end = longest_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  size_t best_distance = 1 + word.size() / 3;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance || (distance == best_distance && best.empty())) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace lancet
