#include "lancet/spec/option_text.h"

#include <cmath>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

std::string number_text(int64_t value) { return cat(value); }
std::string number_text(double value) { return ConfigTree::number(value).scalar; }

/// " above 0" for a least number that only keeps 0 out.
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

}  // namespace lancet
