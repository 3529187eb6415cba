#include "lancet/core/strings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
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

bool is_blank(std::string_view text) { return text.find_first_not_of(kAsciiWhiteSpace) == std::string_view::npos; }

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
  while (end > 0 && !begins_character(text[end])) --end;
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

std::string count_text(size_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string counted(size_t count, std::string_view what) {
  return cat(count_text(count), " ", what, count == 1 ? "" : "s");
}

std::string percent(double share) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.1f %%", 100 * share);
  return text;
}

std::string short_number(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g", number);
  return text;
}

std::string shortfall_text(double share, double threshold) {
  const bool shows = std::round(1000 * share) < 1000 * threshold;
  return cat(shows ? percent(share) : cat(100 * share, " %"), ", expected at least ", 100 * threshold, " %");
}

std::string csv_text(std::string_view text) {
  const bool runs = !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  return csv_field(runs ? cat("'", text) : std::string(text));
}

size_t announced_utf8_bytes(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  if (byte < 0x80) return 1;
  return byte < 0xC2 ? 0 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : byte < 0xF5 ? 4 : 0;
}

CodePoint decode_utf8_at(std::string_view text, size_t at) {
  const auto lead = static_cast<uint8_t>(text[at]);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = announced_utf8_bytes(text[at]);
  if (bytes == 0 || at + bytes > text.size()) return {};
  char32_t value = static_cast<char32_t>(lead & (0x7F >> bytes));
  for (size_t i = 1; i < bytes; ++i) {
    if (begins_character(text[at + i])) return {};
    value = (value << 6) | (static_cast<uint8_t>(text[at + i]) & 0x3F);
  }
  const bool overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (overlong || surrogate || value > 0x10FFFF) return {};
  return {value, bytes};
}

std::optional<size_t> first_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = decode_utf8_at(text, at).bytes;
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::nullopt;
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

size_t bytes_of_characters(std::string_view text, size_t count) {
  size_t at = 0;
  while (at < text.size()) {
    if (begins_character(text[at]) && count-- == 0) break;
    ++at;
  }
  return at;
}

namespace {

/// Whether a terminal or a reader would obey the character: C0 except line break and tab, DEL, C1 (a terminal may read
/// U+009B as ESC [), line and paragraph separators, and the marks that change the order in which text is shown.
bool is_obeyed(char32_t value) {
  if (value == '\n' || value == '\t') return false;
  return value < 0x20 || (value >= 0x7F && value < 0xA0) || (value >= 0x2028 && value <= 0x202E) ||
         (value >= 0x2066 && value <= 0x2069);
}

}  // namespace

std::string visible_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint next = decode_utf8_at(text, at);
    if (next.bytes == 0) {
      out += kReplacementCharacter;
    } else if (is_obeyed(next.value)) {
      std::array<char, 8> spelt{};
      std::snprintf(spelt.data(), spelt.size(), "\\u%04x", static_cast<unsigned>(next.value));
      out += spelt.data();
    } else {
      out += text.substr(at, next.bytes);
    }
    at += next.bytes == 0 ? 1 : next.bytes;
  }
  return out;
}

size_t whole_characters(std::string_view text) {
  constexpr size_t kLongest = 4;
  for (size_t back = 1; back < kLongest && back <= text.size(); ++back) {
    const size_t announced = announced_utf8_bytes(text[text.size() - back]);
    if (announced > back) return text.size() - back;
    if (announced > 0) break;
  }
  return text.size();
}

}  // namespace lancet
