#include "number_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "characters.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

std::string_view without_blanks(std::string_view text) { return strip_right(strip_left(text)); }

/// Returns the text without single underscores between digits; nullopt if there is an underscore elsewhere.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string kept;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      kept += text[i];
      continue;
    }
    const auto is_alnum = [](char c) { return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); };
    if (i == 0 || i + 1 == text.size() || !is_alnum(text[i - 1]) || !is_alnum(text[i + 1])) return std::nullopt;
  }
  return kept;
}

}  // namespace

std::string python_float_text(double real) {
  if (std::isnan(real)) return "nan";
  if (std::isinf(real)) return real < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer{};
  const auto shortest =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), real, std::chars_format::scientific);
  const std::string_view text(buffer.data(), static_cast<size_t>(shortest.ptr - buffer.data()));
  const size_t mark = text.find('e');
  int exponent = 0;
  const std::string_view digits_of_exponent = text.substr(mark + (text[mark + 1] == '+' ? 2 : 1));
  std::from_chars(digits_of_exponent.data(), digits_of_exponent.data() + digits_of_exponent.size(), exponent);
  if (exponent < -4 || exponent >= 16) return std::string(text);  // both write at least two digits of the exponent
  const auto fixed = std::to_chars(buffer.data(), buffer.data() + buffer.size(), real, std::chars_format::fixed);
  std::string plain(buffer.data(), static_cast<size_t>(fixed.ptr - buffer.data()));
  if (plain.find('.') == std::string::npos) plain += ".0";
  return plain;
}

std::optional<int64_t> read_python_integer(std::string_view given, int base) {
  std::string_view text = without_blanks(given);
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  const char mark = text.size() > 1 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : '\0';
  const int marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
  if (marked != 0 && (base == 0 || base == marked)) {
    text.remove_prefix(text.size() > 2 && text[2] == '_' ? 3 : 2);
    base = marked;
  } else if (base == 0) {
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos)
      return std::nullopt;
    base = 10;
  }
  if (base < 2 || base > 36) return std::nullopt;
  const std::optional<std::string> digits = without_underscores(text);
  if (!digits || digits->empty() || (*digits)[0] == '-') return std::nullopt;
  const std::string signed_digits = (is_negative ? "-" : "") + *digits;
  int64_t value = 0;
  const char* end = signed_digits.data() + signed_digits.size();
  const auto [stop, problem] = std::from_chars(signed_digits.data(), end, value, base);
  if (stop != end || problem != std::errc()) return std::nullopt;
  return value;
}

std::optional<double> read_python_float(std::string_view given) {
  const std::optional<std::string> kept = without_underscores(without_blanks(given));
  if (!kept || kept->empty()) return std::nullopt;
  const std::string lower = to_lower(*kept);
  const std::string_view word = std::string_view(lower).substr(lower[0] == '-' || lower[0] == '+' ? 1 : 0);
  const double sign = lower[0] == '-' ? -1 : 1;
  if (word == "inf" || word == "infinity") return sign * std::numeric_limits<double>::infinity();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (word.empty() || word.find_first_not_of("0123456789.e+-") != std::string_view::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(kept->c_str(), &end);
  if (end != kept->c_str() + kept->size()) return std::nullopt;
  return value;
}

}  // namespace lancet
