// Arguments of functions, methods, filters and tests, with their declared parameters.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/strings.h"
#include "operations.h"

namespace lancet {

/// The arguments of one call, by the names of the parameters. An argument is given once, or absent.
class JinjaBoundArguments {
 public:
  /// `names`: the parameters in order; they can also be given by name. Throws: JinjaError for arguments that belong to
  /// no parameter.
  JinjaBoundArguments(JinjaRun& run, std::string_view function, const JinjaArguments& given,
                      std::initializer_list<std::string_view> names)
      : run_(run), function_(function), names_(names), values_(names.size()) {
    if (given.positional.size() > names_.size())
      run.fail(
          cat(function, ": expected at most ", counted(names_.size(), "argument"), ", got ", given.positional.size()));
    for (size_t i = 0; i < given.positional.size(); ++i) values_[i] = given.positional[i];
    for (const auto& [name, value] : given.named) {
      const auto place = std::ranges::find(names_, name);
      if (place == names_.end()) run.fail(cat(function, ": no argument of the name ", name));
      std::optional<JinjaValue>& slot = values_[static_cast<size_t>(place - names_.begin())];
      if (slot) run.fail(cat(function, ": ", name, " is given twice"));
      slot = value;
    }
  }

  const std::optional<JinjaValue>& operator[](size_t i) const { return values_[i]; }
  bool has(size_t i) const { return values_[i].has_value(); }

  /// Throws: JinjaError if it is absent.
  const JinjaValue& need(size_t i) const {
    if (!values_[i]) run_.fail(cat(function_, ": expected an argument ", names_[i]));
    return *values_[i];
  }

  bool truth(size_t i, bool fallback) const { return values_[i] ? is_true(run_, *values_[i]) : fallback; }

  int64_t integer(size_t i, int64_t fallback) const { return values_[i] ? whole(*values_[i], i) : fallback; }
  int64_t need_integer(size_t i) const { return whole(need(i), i); }

  /// Returns an argument that must be a text. If there is a `fallback`, none counts as absent.
  const std::string& need_text(size_t i) const {
    const JinjaValue& value = need(i);
    if (value.is_undefined()) run_.fail_undefined(value);
    if (!value.is_text()) run_.fail(cat(function_, ": ", names_[i], ": expected a text, got ", shown_type(value)));
    return value.text();
  }
  std::optional<std::string> text_or_none(size_t i) const {
    if (!values_[i] || values_[i]->is_none()) return std::nullopt;
    return need_text(i);
  }

 private:
  int64_t whole(const JinjaValue& value, size_t i) const {
    if (value.is_undefined()) run_.fail_undefined(value);
    if (!value.is_whole())
      run_.fail(cat(function_, ": ", names_[i], ": expected a whole number, got ", shown_type(value)));
    return value.integer();
  }

  JinjaRun& run_;
  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<std::optional<JinjaValue>> values_;
};

/// Throws: JinjaError if any argument is given by name.
inline void refuse_named(JinjaRun& run, std::string_view function, const JinjaArguments& given) {
  if (!given.named.empty()) run.fail(cat(function, ": takes no argument by name, got ", given.named.front().first));
}

}  // namespace lancet
