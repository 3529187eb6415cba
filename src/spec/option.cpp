#include "lancet/spec/option.h"

#include <algorithm>
#include <cmath>

#include "lancet/core/strings.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

template <typename T>
bool lacks_default(const T& option) {
  return option.absent.empty() && option.automatic.empty() && !option.fallback;
}

struct IsRequired {
  bool operator()(const IntegerOption* option) const { return lacks_default(*option); }
  bool operator()(const NumberOption* option) const { return lacks_default(*option); }
  bool operator()(const TextOption* option) const { return option->absent.empty() && !option->fallback; }
  bool operator()(const PathOption* option) const { return option->absent.empty() && option->fallback.empty(); }
  bool operator()(const SectionOption* option) const {
    return option->absent.empty() && option->shape == Shape::kKeysOrRecords;
  }
  bool operator()(const Option*) const { return false; }
};

void add_placed(std::span<const AnyOption> keys, std::string_view method, const std::string& parent,
                std::vector<PlacedOption>& all) {
  for (const AnyOption& option : keys) {
    const Option& base = base_of(option);
    if (!method.empty() && !has_option(base, method)) continue;
    const std::string key = cat(parent, base.key);
    all.push_back({key, option});
    if (const auto* section = std::get_if<const SectionOption*>(&option))
      add_placed((*section)->keys, method, key + ".", all);
  }
}

}  // namespace

const Option& base_of(const AnyOption& option) {
  return std::visit([](const auto* one) -> const Option& { return *one; }, option);
}

bool is_required(const AnyOption& option) { return std::visit(IsRequired(), option); }

bool has_option(const Option& option, std::string_view method) {
  const std::vector<std::string> methods = split(option.methods, ' ');
  return option.methods.empty() || std::find(methods.begin(), methods.end(), method) != methods.end();
}

std::vector<PlacedOption> placed_options(std::span<const AnyOption> keys, std::string_view method) {
  std::vector<PlacedOption> all;
  add_placed(keys, method, "", all);
  return all;
}

namespace {

std::string number_text(int64_t value) { return cat(value); }
std::string number_text(double value) { return ConfigTree::number(value).scalar; }

/// Returns " above 0" if the smallest allowed number is so small that it only excludes 0.
template <typename T>
std::string limits_text(const ConfigRange<T>& range) {
  const bool has_min = range.min != ConfigRange<T>().min, has_max = range.max != ConfigRange<T>().max;
  const double whole = std::floor(static_cast<double>(range.min)), over = static_cast<double>(range.min) - whole;
  const std::string from =
      over > 0 && over < 1e-5 ? cat(" above ", whole) : cat(" of at least ", number_text(range.min));
  if (has_min && has_max) return cat(from, ", at most ", number_text(range.max));
  if (has_min) return from;
  return has_max ? cat(" of at most ", number_text(range.max)) : "";
}

std::string or_auto(std::string_view automatic, const std::string& type) {
  return automatic.empty() ? type : cat("`auto` or ", type);
}

struct TypeText {
  std::string operator()(const IntegerOption* option) const {
    return or_auto(option->automatic, cat("integer", limits_text(option->range)));
  }
  std::string operator()(const NumberOption* option) const {
    const std::string number = cat("number", limits_text(option->range));
    if (option->share_key.empty()) return or_auto(option->automatic, number);
    return cat("`auto`, ", number, ", or `{", option->share_key, ": A}`");
  }
  std::string operator()(const FlagOption*) const { return "true or false"; }
  std::string operator()(const ChoiceOption* option) const { return quoted_names(option->names); }
  std::string operator()(const TextOption* option) const {
    return option->of == Vocabulary::kFormats   ? "`auto` or a format"
           : option->of == Vocabulary::kMethods ? "a method"
                                                : "text";
  }
  std::string operator()(const PathOption*) const { return "path"; }
  std::string operator()(const IntegersOption* option) const {
    return or_auto(option->automatic, cat("list of integers", limits_text(option->range)));
  }
  std::string operator()(const TextsOption* option) const {
    if (!option->alone.empty()) return "text or list of texts";
    return option->of == Vocabulary::kFree        ? "list of texts"
           : option->of == Vocabulary::kProtocols ? "list of protocols"
                                                  : "list of metrics";
  }
  std::string operator()(const SectionOption* option) const {
    switch (option->shape) {
      case Shape::kKeys:
        return "map";
      case Shape::kKeysOrAuto:
        return "`auto` or map";
      case Shape::kKeysOrTexts:
      case Shape::kKeysOrTasks:
        return "map, or list of texts";
      case Shape::kKeysOrNames:
        return "map, or list of protocols";
      case Shape::kKeysOrRecords:
        return "map, or list of records";
      case Shape::kShares:
        return "map of metrics to numbers from 0 to 1";
      case Shape::kLabelledShares:
        return "map of labels to metrics with numbers from 0 to 1";
      case Shape::kLists:
        return "map of keys to lists";
      case Shape::kEditors:
        return "map of labels to editors";
    }
    return "";
  }
};

struct DefaultText {
  template <typename T>
  std::string of_number(const T* option) const {
    if (option->fallback) return number_text(*option->fallback);
    return option->automatic.empty() ? "" : "auto";
  }
  std::string operator()(const IntegerOption* option) const { return of_number(option); }
  std::string operator()(const NumberOption* option) const { return of_number(option); }
  std::string operator()(const FlagOption* option) const { return option->fallback ? "true" : "false"; }
  std::string operator()(const ChoiceOption* option) const { return std::string(option->names.front()); }
  std::string operator()(const TextOption* option) const { return std::string(option->fallback.value_or("")); }
  std::string operator()(const PathOption* option) const { return std::string(option->fallback); }
  std::string operator()(const IntegersOption* option) const { return option->automatic.empty() ? "[]" : "auto"; }
  std::string operator()(const TextsOption* option) const {
    if (!option->alone.empty()) return std::string(option->alone);
    return cat("[", join(std::vector<std::string>(option->fallback.begin(), option->fallback.end())), "]");
  }
  std::string operator()(const SectionOption* option) const { return option->automatic.empty() ? "" : "auto"; }
};

struct AutomaticText {
  std::string operator()(const NumberOption* option) const {
    return option->share_key.empty() ? std::string(option->automatic)
                                     : cat(option->automatic, ": ", number_text(option->share));
  }
  std::string operator()(const IntegerOption* option) const { return std::string(option->automatic); }
  std::string operator()(const IntegersOption* option) const { return std::string(option->automatic); }
  std::string operator()(const SectionOption* option) const { return std::string(option->automatic); }
  std::string operator()(const Option*) const { return ""; }
};

}  // namespace

std::string default_text(const AnyOption& option) { return std::visit(DefaultText(), option); }

std::string type_text(const AnyOption& option) {
  const std::string_view unit = base_of(option).unit;
  return std::visit(TypeText(), option) + (unit.empty() ? "" : cat(", in ", unit));
}

std::vector<std::string> choices_of(const AnyOption& option) {
  const auto* choice = std::get_if<const ChoiceOption*>(&option);
  if (choice == nullptr) return {};
  return {(*choice)->names.begin(), (*choice)->names.end()};
}

std::string range_text(const AnyOption& option) {
  if (const auto* integer = std::get_if<const IntegerOption*>(&option)) return limits_text((*integer)->range);
  if (const auto* number = std::get_if<const NumberOption*>(&option)) return limits_text((*number)->range);
  return {};
}

std::string description_of(const AnyOption& option) {
  const Option& base = base_of(option);
  std::string text(base.meaning);
  if (const std::string automatic = std::visit(AutomaticText(), option); !automatic.empty())
    text += cat("; auto: ", automatic);
  return text;
}

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
