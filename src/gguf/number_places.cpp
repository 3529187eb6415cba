#include "number_places.h"

#include <algorithm>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr std::string_view kNumberPlace = "{}";

}  // namespace

std::optional<NameNumbers> numbers_in(std::string_view name, std::string_view pattern) {
  NameNumbers numbers{};
  for (size_t i = 0;; ++i) {
    const size_t at = pattern.find(kNumberPlace);
    if (at == std::string_view::npos) return name == pattern ? std::optional(numbers) : std::nullopt;
    if (!name.starts_with(pattern.substr(0, at))) return std::nullopt;
    name.remove_prefix(at);
    pattern.remove_prefix(at + kNumberPlace.size());
    const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    const std::optional<int64_t> number = parse_whole_number(name.substr(0, digits));
    if (!number || i == numbers.size()) return std::nullopt;
    numbers[i] = *number;
    name.remove_prefix(digits);
  }
}

std::string numbered(std::string_view pattern, const NameNumbers& numbers) {
  std::string name(pattern);
  for (const int64_t number : numbers)
    if (const size_t at = name.find(kNumberPlace); at != std::string::npos)
      name.replace(at, kNumberPlace.size(), std::to_string(number));
  return name;
}

int64_t places_in(std::string_view pattern) {
  int64_t places = 0;
  for (size_t at = pattern.find(kNumberPlace); at != std::string_view::npos; at = pattern.find(kNumberPlace, at + 1))
    ++places;
  return places;
}

}  // namespace lancet
