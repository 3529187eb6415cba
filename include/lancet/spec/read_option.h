// Reading an option by its declaration, which has the key, the range and the default. Defined in option.cpp.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lancet/spec/option.h"

namespace lancet {

int64_t read(ConfigSection& section, const IntegerOption& option);
double read(ConfigSection& section, const NumberOption& option);
bool read(ConfigSection& section, const FlagOption& option);
std::string read(ConfigSection& section, const TextOption& option);
std::vector<int64_t> read(ConfigSection& section, const IntegersOption& option);
std::vector<std::string> read(ConfigSection& section, const TextsOption& option);
/// Reads like ConfigSection::path. Without `fallback` the path is required.
std::filesystem::path read(ConfigSection& section, const PathOption& option, const std::filesystem::path& base,
                           std::optional<std::filesystem::path> fallback = {});

/// nullopt: absent, and not recorded.
std::optional<int64_t> read_given(ConfigSection& section, const IntegerOption& option);
std::optional<double> read_given(ConfigSection& section, const NumberOption& option);

/// nullopt: auto, or absent.
std::optional<int64_t> read_or_auto(ConfigSection& section, const IntegerOption& option);
std::optional<double> read_or_auto(ConfigSection& section, const NumberOption& option);
std::optional<std::vector<int64_t>> read_or_auto(ConfigSection& section, const IntegersOption& option);

/// The place of the chosen name.
size_t read_index(ConfigSection& section, const ChoiceOption& option);
template <typename Enum>
Enum read(ConfigSection& section, const ChoiceOption& option) {
  return static_cast<Enum>(read_index(section, option));
}

/// Adds a problem for each key that `option`, which is there, takes the place of; `why` follows its name.
void refuse_replaced(ConfigSection& section, const Option& option, std::string_view why);

}  // namespace lancet
