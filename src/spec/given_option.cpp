#include "lancet/spec/given_option.h"

#include <filesystem>

#include "lancet/core/error.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

/// Reads the only value of a section. Its key is empty.
struct ReadAlone {
  ConfigSection& section;
  const ConfigTree& value;

  template <typename T>
  static T without_key(const T& option) {
    T alone = option;
    alone.key = {};
    return alone;
  }

  template <typename T>
  void read_number(const T& option) const {
    if (option.automatic.empty())
      read(section, option);
    else
      read_or_auto(section, option);
  }

  void operator()(const IntegerOption* option) const { read_number(without_key(*option)); }
  void operator()(const NumberOption* option) const { read_number(without_key(*option)); }
  void operator()(const IntegersOption* option) const { read_number(without_key(*option)); }
  void operator()(const FlagOption* option) const { read(section, without_key(*option)); }
  void operator()(const TextOption* option) const { read(section, without_key(*option)); }
  void operator()(const ChoiceOption* option) const { read_index(section, without_key(*option)); }
  void operator()(const PathOption* option) const { read(section, without_key(*option), std::filesystem::path()); }
  void operator()(const TextsOption* option) const {
    const bool is_single = !option->alone.empty() && value.kind == ConfigTree::Kind::kScalar;
    if (!is_single) read(section, without_key(*option));
  }
  void operator()(const SectionOption*) const {}  // the options inside a section are read one by one
};

}  // namespace

std::string given_problem(const AnyOption& option, const ConfigTree& value) {
  constexpr std::string_view kNoPlace = ": ";  // the beginning of a problem without source, line and key
  ConfigTree alone = ConfigTree::map();
  alone.set("", value);
  forget_lines(alone);
  ConfigProblems problems("");
  ConfigSection section(alone, "", problems);
  std::visit(ReadAlone{section, value}, option);
  try {
    problems.throw_if_any();
  } catch (const ConfigError& error) {
    return std::string(error.what()).substr(kNoPlace.size());
  }
  return {};
}

}  // namespace lancet
