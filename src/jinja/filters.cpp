#include "filters.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "characters.h"
#include "lancet/core/strings.h"
#include "methods.h"

namespace lancet {
namespace {

constexpr std::string_view kOtherFilters[] = {"filesizeformat", "forceescape", "groupby",   "pprint",
                                              "random",         "striptags",   "urlencode", "urlize",
                                              "wordcount",      "wordwrap",    "xmlattr"};

const std::map<std::string_view, JinjaFilter>& all_filters() {
  static const std::map<std::string_view, JinjaFilter> kFilters = [] {
    std::map<std::string_view, JinjaFilter> made;
    for (const auto* rows : {&text_filters(), &number_filters(), &list_filters(), &choice_filters()})
      for (const JinjaFilterRow& row : *rows) made.emplace(row.name, row.call);
    return made;
  }();
  return kFilters;
}

std::string unknown_filter(const std::string& name) {
  const bool is_jinjas = std::ranges::find(kOtherFilters, name) != std::end(kOtherFilters);
  return cat("|", name, ": ",
             is_jinjas ? "lancet does not have this filter of Jinja's" : "Jinja has no filter of this name");
}

JinjaValue getter_part(JinjaRun& run, const std::string& part) {
  int64_t index = 0;
  const char* end = part.data() + part.size();
  const bool is_number = !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number || std::from_chars(part.data(), end, index).ec != std::errc()) return run.text(part);
  return JinjaValue::of(index);
}

}  // namespace

bool has_filter(const std::string& name) { return all_filters().contains(name); }

void check_filter_name(const std::string& name, int64_t line) {
  if (!has_filter(name)) throw JinjaError(JinjaError::Cause::kTemplate, unknown_filter(name), line);
}

JinjaValue call_filter(JinjaRun& run, const std::string& name, const JinjaValue& value,
                       const JinjaArguments& arguments) {
  const JinjaRun::Level level(run);
  run.charge(1);
  const auto found = all_filters().find(name);
  if (found == all_filters().end()) run.fail(unknown_filter(name));
  return found->second({run, found->first, value, arguments});
}

JinjaGetter attribute_getter(JinjaRun& run, const JinjaValue& attribute) {
  std::vector<JinjaValue> parts;
  if (attribute.is_text()) {
    for (const std::string& part : split_text(run, attribute.text(), {.separator = "."}))
      parts.push_back(getter_part(run, part));
  } else if (!attribute.is_none()) {
    parts.push_back(attribute);
  }
  return [&run, parts = std::move(parts)](const JinjaValue& value) {
    JinjaValue found = value;
    for (const JinjaValue& part : parts) found = item_of(run, found, part);
    return found;
  };
}

JinjaValue without_case(JinjaRun& run, const JinjaValue& value) {
  return value.is_text() ? run.text_like(value, to_lower(value.text())) : value;
}

}  // namespace lancet
