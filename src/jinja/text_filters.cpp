// Filters for texts and for any values.
#include <algorithm>

#include "arguments.h"
#include "characters.h"
#include "filters.h"
#include "lancet/core/strings.h"
#include "methods.h"

namespace lancet {
namespace {

JinjaBoundArguments bind(const JinjaFilterCall& call, std::initializer_list<std::string_view> names) {
  return {call.run, call.name, call.given, names};
}

/// Returns the value as a text, which stays marked as safe.
JinjaValue as_text(const JinjaFilterCall& call) {
  return call.value.is_text() ? call.value : call.run.text(text_of(call.run, call.value));
}

JinjaValue case_filter(const JinjaFilterCall& call) {
  bind(call, {});
  return call_text_method(call.run, as_text(call), call.name, {});
}

/// Words are separated by white space and ( { [ < -.
JinjaValue title_filter(const JinjaFilterCall& call) {
  bind(call, {});
  const JinjaValue value = as_text(call);
  const std::string& text = value.text();
  const auto ends_word = [&](size_t at) {
    return is_python_blank(decode_utf8_at(text, at).value) ||
           std::string_view("-({[<").find(text[at]) != std::string_view::npos;
  };
  std::string made;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    const bool is_between = ends_word(at);
    while (end < text.size() && ends_word(end) == is_between) end = after_characters(text, end, 1);
    const size_t second = after_characters(text, at, 1);
    made += is_between ? text.substr(at, end - at)
                       : to_upper(text.substr(at, second - at)) + to_lower(text.substr(second, end - second));
    at = end;
  }
  return call.run.text(std::move(made));
}

JinjaValue trim_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments = bind(call, {"chars"});
  const JinjaValue value = as_text(call);
  return call.run.text_like(value, stripped_text(value.text(), arguments.text_or_none(0), JinjaSide::kBoth));
}

JinjaValue replace_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments = bind(call, {"old", "new", "count"});
  const bool has_count = arguments.has(2) && !arguments[2]->is_none();
  return call.run.text(replaced_text(call.run, text_of(call.run, call.value), text_of(call.run, arguments.need(0)),
                                     text_of(call.run, arguments.need(1)), has_count ? arguments.integer(2, -1) : -1));
}

JinjaValue indent_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments = bind(call, {"width", "first", "blank"});
  if (call.value.is_undefined()) call.run.fail_undefined(call.value);
  if (!call.value.is_text()) call.run.fail(cat("indent: expected a text, got ", shown_type(call.value)));
  std::string by;
  if (arguments.has(0) && arguments[0]->is_text()) {
    by = arguments[0]->text();
  } else {
    const int64_t width = std::max<int64_t>(arguments.integer(0, 4), 0);
    call.run.charge_memory(width);
    by.assign(static_cast<size_t>(width), ' ');
  }
  const bool indents_blank = arguments.truth(2, false);
  const std::vector<std::string> lines = lines_of(call.value.text() + "\n");
  std::string made = arguments.truth(1, false) ? by : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) made += "\n";
    if (i > 0 && (indents_blank || !lines[i].empty())) {
      call.run.charge_memory(static_cast<int64_t>(by.size()));
      made += by;
    }
    made += lines[i];
  }
  return call.run.text_like(call.value, std::move(made));
}

JinjaValue truncate_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments = bind(call, {"length", "killwords", "end", "leeway"});
  const int64_t length = arguments.integer(0, 255);
  const std::string end = arguments.has(2) ? arguments.need_text(2) : "...";
  const int64_t leeway = arguments.has(3) && !arguments[3]->is_none() ? arguments.integer(3, 5) : 5;
  const auto end_length = static_cast<int64_t>(count_characters(end));
  if (length < end_length || leeway < 0) call.run.fail("truncate: a length below that of the end, or a leeway below 0");
  if (length_of(call.run, call.value) <= length + leeway) return call.value;  // for any value
  if (!call.value.is_text()) call.run.fail(cat("truncate: expected a text, got ", shown_type(call.value)));
  const std::string& text = call.value.text();
  std::string kept = text.substr(0, after_characters(text, 0, length - end_length));
  if (!arguments.truth(1, false))
    if (const size_t space = kept.rfind(' '); space != std::string::npos) kept.resize(space);
  return call.run.text(kept + end);
}

JinjaValue center_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments = bind(call, {"width"});
  return call_text_method(call.run, as_text(call), "center",
                          {.positional = {JinjaValue::of(arguments.integer(0, 80))}});
}

JinjaValue string_filter(const JinjaFilterCall& call) {
  bind(call, {});
  return as_text(call);
}

JinjaValue safe_filter(const JinjaFilterCall& call) {
  bind(call, {});
  return call.run.safe_text(text_of(call.run, call.value));
}

JinjaValue escape_filter(const JinjaFilterCall& call) {
  bind(call, {});
  if (call.value.is_safe_text()) return call.value;
  return call.run.safe_text(escaped_html(text_of(call.run, call.value)));
}

JinjaValue format_filter(const JinjaFilterCall& call) {
  if (!call.given.positional.empty() && !call.given.named.empty())
    call.run.fail("format: expected values, or values by name, got both");
  JinjaValue values = call.run.tuple(call.given.positional);
  if (!call.given.named.empty()) {
    std::vector<JinjaDict::Entry> entries;
    for (const auto& [name, value] : call.given.named) entries.push_back({call.run.text(name), value});
    values = call.run.dict(std::move(entries));
  }
  return arithmetic(call.run, "%", as_text(call), values);
}

JinjaValue default_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments = bind(call, {"default_value", "boolean"});
  const bool is_wanted = call.value.is_undefined() || (arguments.truth(1, false) && !is_true(call.run, call.value));
  if (!is_wanted) return call.value;
  return arguments.has(0) ? *arguments[0] : call.run.text("");
}

JinjaValue attr_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments = bind(call, {"name"});
  const std::string& name = arguments.need_text(0);
  if (std::optional<JinjaValue> own = own_attribute(call.run, call.value, name)) return *own;
  return call.run.undefined(cat("'", name, "' is undefined: ", shown_type(call.value), " has nothing of this name"));
}

std::optional<std::string> json_indent(const JinjaFilterCall& call, const std::optional<JinjaValue>& given) {
  if (!given || given->is_none()) return std::nullopt;
  if (given->is_text()) return given->text();
  if (!given->is_whole())
    call.run.fail(cat("tojson: indent: expected a whole number or a text, got ", shown_type(*given)));
  const int64_t width = std::max<int64_t>(given->integer(), 0);
  call.run.charge_memory(width);
  return std::string(static_cast<size_t>(width), ' ');
}

JinjaValue tojson_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments = bind(call, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonForm form{.is_ascii = arguments.truth(0, false),
                .indent = json_indent(call, arguments[1]),
                .sorts_keys = arguments.truth(3, false)};
  if (form.indent) form.item_separator = ",";
  if (arguments.has(2) && !arguments[2]->is_none()) {
    const std::vector<JinjaValue> separators = items_of(call.run, *arguments[2]);
    if (separators.size() != 2 || !separators[0].is_text() || !separators[1].is_text())
      call.run.fail("tojson: separators: expected two texts");
    form.item_separator = separators[0].text();
    form.key_separator = separators[1].text();
  }
  return call.run.text(json_of(call.run, call.value, form));
}

}  // namespace

const std::vector<JinjaFilterRow>& text_filters() {
  static const std::vector<JinjaFilterRow> kRows{
      {"upper", case_filter},    {"lower", case_filter},        {"capitalize", case_filter},
      {"title", title_filter},   {"trim", trim_filter},         {"replace", replace_filter},
      {"indent", indent_filter}, {"truncate", truncate_filter}, {"center", center_filter},
      {"string", string_filter}, {"safe", safe_filter},         {"escape", escape_filter},
      {"e", escape_filter},      {"format", format_filter},     {"default", default_filter},
      {"d", default_filter},     {"attr", attr_filter},         {"tojson", tojson_filter}};
  return kRows;
}

}  // namespace lancet
