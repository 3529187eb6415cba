#include "number_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr int64_t kMostPrecision = 300;

/// Returns the digits of a whole number without its sign.
std::string whole_digits(int64_t value, const JinjaFormat& format) {
  const int base = format.type == 'x' || format.type == 'X' ? 16 : format.type == 'o' ? 8 : format.type == 'b' ? 2 : 10;
  const uint64_t size = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  std::array<char, 70> buffer{};
  std::string digits(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), size, base).ptr);
  if (format.type == 'X')
    std::ranges::transform(digits, digits.begin(), [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
  return digits;
}

std::string real_digits(JinjaRun& run, double value, const JinjaFormat& format) {
  if (format.precision > kMostPrecision) run.fail(cat("a format with more than ", kMostPrecision, " digits"));
  const bool is_percent = format.type == '%';
  const std::string form = cat("%", format.is_alternate ? "#" : "", ".*", is_percent ? 'f' : format.type);
  std::array<char, 700> buffer{};
  const int precision = format.precision < 0 ? 6 : static_cast<int>(format.precision);
  const double size = std::isnan(value) ? std::nan("") : std::abs(value);
  std::snprintf(buffer.data(), buffer.size(), form.c_str(), precision, is_percent ? size * 100 : size);
  return std::string(buffer.data()) + (is_percent ? "%" : "");
}

/// Puts separators between the groups of digits before the point. `least`: number of digits, which zeros at the
/// beginning fill up.
std::string grouped(const std::string& digits, char separator, size_t least) {
  const size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string whole = digits.substr(0, end);
  const auto length = [&] { return whole.size() + (whole.empty() ? 0 : (whole.size() - 1) / 3) + digits.size() - end; };
  while (length() < least) whole.insert(0, "0");
  std::string made;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (i > 0 && (whole.size() - i) % 3 == 0) made += separator;
    made += whole[i];
  }
  if (made.size() + digits.size() - end > least && made.size() > 1 && made[0] == separator) made.erase(0, 1);
  return made + digits.substr(end);
}

}  // namespace

std::string padded_text(JinjaRun& run, std::string text, const JinjaFormat& format) {
  const int64_t missing = format.width - static_cast<int64_t>(count_characters(text));
  if (missing <= 0) return text;
  run.charge_memory(missing * static_cast<int64_t>(format.fill.size()));
  const int64_t before = format.align == '>' || format.align == '=' ? missing : format.align == '^' ? missing / 2 : 0;
  std::string made;
  for (int64_t i = 0; i < before; ++i) made += format.fill;
  made += text;
  for (int64_t i = before; i < missing; ++i) made += format.fill;
  return made;
}

std::string formatted_number(JinjaRun& run, const JinjaValue& value, const JinjaFormat& format) {
  const bool is_whole = std::string_view("dboxX").find(format.type) != std::string_view::npos;
  const double real = value.real();
  const bool is_negative = is_whole ? value.integer() < 0 : std::signbit(real) && !std::isnan(real);
  std::string sign = is_negative ? "-" : format.sign == '-' ? "" : std::string(1, format.sign);
  std::string digits = is_whole ? whole_digits(value.integer(), format) : real_digits(run, real, format);
  if (is_whole && format.precision > static_cast<int64_t>(digits.size())) {
    if (format.precision > kMostPrecision) run.fail(cat("a format with more than ", kMostPrecision, " digits"));
    digits.insert(0, static_cast<size_t>(format.precision) - digits.size(), '0');
  }
  if (is_whole && format.is_alternate && format.type != 'd') sign += cat("0", format.type);
  const bool fills_inside = format.align == '=' || (format.align == '\0' && format.pads_zeros);
  const std::string fill = format.pads_zeros && format.align == '\0' ? "0" : format.fill;
  const int64_t inside = format.width - static_cast<int64_t>(sign.size());
  if (format.grouping != '\0') {
    if (format.type != 'd' && std::string_view("eEfFgG%").find(format.type) == std::string_view::npos)
      run.fail("a format with separators of groups: lancet has them for decimal numbers");
    run.charge_memory(std::max<int64_t>(format.width, 0));
    digits = grouped(digits, format.grouping,
                     fills_inside && fill == "0" ? static_cast<size_t>(std::max<int64_t>(inside, 0)) : 0);
  }
  if (!fills_inside) {
    JinjaFormat outside = format;
    if (outside.align == '\0') outside.align = '>';
    return padded_text(run, sign + digits, outside);
  }
  std::string made = sign;
  if (const int64_t missing = inside - static_cast<int64_t>(digits.size()); missing > 0) {
    run.charge_memory(missing * static_cast<int64_t>(fill.size()));
    for (int64_t i = 0; i < missing; ++i) made += fill;
  }
  return made + digits;
}

}  // namespace lancet
