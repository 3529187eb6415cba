#include "lancet/core/words.h"

#include <cmath>
#include <cstdio>

#include "lancet/core/strings.h"

namespace lancet {

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

}  // namespace lancet
