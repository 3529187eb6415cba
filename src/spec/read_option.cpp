#include "lancet/spec/read_option.h"

#include <algorithm>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

std::vector<std::string> texts_of(std::span<const std::string_view> names) { return {names.begin(), names.end()}; }

}  // namespace

int64_t read(ConfigSection& section, const IntegerOption& option) {
  return section.integer(option.key, option.range, option.fallback);
}

double read(ConfigSection& section, const NumberOption& option) {
  return section.number(option.key, option.range, option.fallback);
}

bool read(ConfigSection& section, const FlagOption& option) { return section.boolean(option.key, option.fallback); }

std::string read(ConfigSection& section, const TextOption& option) {
  return section.text(option.key, option.fallback ? std::optional(std::string(*option.fallback)) : std::nullopt);
}

std::vector<int64_t> read(ConfigSection& section, const IntegersOption& option) {
  return section.integers(option.key, option.range, std::vector<int64_t>{});
}

std::vector<std::string> read(ConfigSection& section, const TextsOption& option) {
  return section.texts(option.key, texts_of(option.fallback));
}

std::filesystem::path read(ConfigSection& section, const PathOption& option, const std::filesystem::path& base,
                           std::optional<std::filesystem::path> fallback) {
  return section.path(option.key, base, std::move(fallback));
}

std::optional<int64_t> read_given(ConfigSection& section, const IntegerOption& option) {
  if (!section.has(option.key)) return std::nullopt;
  return section.integer(option.key, option.range);
}

std::optional<double> read_given(ConfigSection& section, const NumberOption& option) {
  if (!section.has(option.key)) return std::nullopt;
  return section.number(option.key, option.range);
}

std::optional<int64_t> read_or_auto(ConfigSection& section, const IntegerOption& option) {
  return section.integer_or_auto(option.key, option.range);
}

std::optional<double> read_or_auto(ConfigSection& section, const NumberOption& option) {
  return section.number_or_auto(option.key, option.range);
}

std::optional<std::vector<int64_t>> read_or_auto(ConfigSection& section, const IntegersOption& option) {
  return section.integers_or_auto(option.key, option.range);
}

size_t read_index(ConfigSection& section, const ChoiceOption& option) {
  const std::vector<std::string> names = texts_of(option.names);
  const std::string name = section.choice(option.key, names, names.front());
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

void refuse_replaced(ConfigSection& section, const Option& option, std::string_view why) {
  for (const std::string& key : split(option.replaces, ' '))
    if (section.has(key))
      section.problem(key, cat("has no meaning beside ", option.key, ", ", why, ": remove one of them"));
}

}  // namespace lancet
