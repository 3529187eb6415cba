// The methods of texts.
#include <algorithm>
#include <functional>
#include <map>

#include "arguments.h"
#include "characters.h"
#include "lancet/core/strings.h"
#include "methods.h"

namespace lancet {
namespace {

/// A call of a method.
struct TextCall {
  JinjaRun& run;
  const JinjaValue& self;
  std::string_view name;
  const JinjaArguments& given;

  const std::string& text() const { return self.text(); }
  JinjaValue same(std::string made) const { return run.text_like(self, std::move(made)); }
  JinjaBoundArguments positional(std::initializer_list<std::string_view> names) const {
    refuse_named(run, name, given);
    return {run, name, given, names};
  }
};

using TextMethod = JinjaValue (*)(const TextCall&);

JinjaValue strip_method(const TextCall& call) {
  const JinjaBoundArguments arguments = call.positional({"chars"});
  const JinjaSide side = call.name == "lstrip"   ? JinjaSide::kLeft
                         : call.name == "rstrip" ? JinjaSide::kRight
                                                 : JinjaSide::kBoth;
  return call.same(stripped_text(call.text(), arguments.text_or_none(0), side));
}

JinjaValue list_of_texts(const TextCall& call, std::vector<std::string> parts) {
  std::vector<JinjaValue> items;
  for (std::string& part : parts) items.push_back(call.same(std::move(part)));
  return call.run.list(std::move(items));
}

JinjaValue split_method(const TextCall& call) {
  const JinjaBoundArguments arguments(call.run, call.name, call.given, {"sep", "maxsplit"});
  return list_of_texts(call, split_text(call.run, call.text(),
                                        {.separator = arguments.text_or_none(0),
                                         .most = arguments.integer(1, -1),
                                         .is_from_right = call.name == "rsplit"}));
}

JinjaValue splitlines_method(const TextCall& call) {
  const JinjaBoundArguments arguments(call.run, call.name, call.given, {"keepends"});
  if (arguments.truth(0, false)) call.run.fail("splitlines: lancet does not keep the ends of lines");
  return list_of_texts(call, lines_of(call.text()));
}

JinjaValue case_method(const TextCall& call) {
  call.positional({});
  if (call.name == "upper") return call.same(to_upper(call.text()));
  if (call.name == "lower") return call.same(to_lower(call.text()));
  if (call.name == "title") return call.same(to_titled(call.text()));
  return call.same(call.name == "capitalize" ? to_capitalized(call.text()) : to_swapped_case(call.text()));
}

JinjaValue replace_method(const TextCall& call) {
  const JinjaBoundArguments arguments = call.positional({"old", "new", "count"});
  return call.same(
      replaced_text(call.run, call.text(), arguments.need_text(0), arguments.need_text(1), arguments.integer(2, -1)));
}

/// The part of a text that find(), count() and startswith() examine, in bytes.
struct TextWindow {
  size_t begin = 0, end = 0;
  int64_t first_character = 0;
  bool is_there = true;  ///< false: the part begins after the text's end
};

TextWindow window_of(const TextCall& call, const JinjaBoundArguments& arguments) {
  const auto length = static_cast<int64_t>(count_characters(call.text()));
  const auto place = [&](size_t i, int64_t fallback) {
    if (!arguments.has(i) || arguments[i]->is_none()) return fallback;
    const int64_t given = arguments.integer(i, 0);
    return given < 0 ? std::max<int64_t>(given + length, 0) : given;
  };
  const int64_t begin = place(1, 0), end = std::min(place(2, length), length);
  TextWindow window;
  window.is_there = begin <= length && begin <= end;
  window.first_character = std::min(begin, length);
  window.begin = after_characters(call.text(), 0, window.first_character);
  window.end = std::max(window.begin, after_characters(call.text(), 0, end));
  return window;
}

JinjaValue affix_method(const TextCall& call) {
  const JinjaBoundArguments arguments = call.positional({"prefix", "start", "end"});
  const TextWindow window = window_of(call, arguments);
  const std::string_view part = std::string_view(call.text()).substr(window.begin, window.end - window.begin);
  const auto holds = [&](const JinjaValue& affix) {
    if (!affix.is_text())
      call.run.fail(cat(call.name, ": expected a text or a tuple of texts, got ", shown_type(affix)));
    return window.is_there &&
           (call.name == "startswith" ? part.starts_with(affix.text()) : part.ends_with(affix.text()));
  };
  const JinjaValue& given = arguments.need(0);
  if (given.is(JinjaKind::kTuple)) return JinjaValue::of(std::ranges::any_of(given.items(), holds));
  return JinjaValue::of(holds(given));
}

JinjaValue find_method(const TextCall& call) {
  const JinjaBoundArguments arguments = call.positional({"sub", "start", "end"});
  const std::string& wanted = arguments.need_text(0);
  const TextWindow window = window_of(call, arguments);
  const std::string_view part = std::string_view(call.text()).substr(window.begin, window.end - window.begin);
  call.run.charge_bytes(part.size());
  size_t at = std::string_view::npos;
  if (window.is_there) at = call.name[0] == 'r' ? part.rfind(wanted) : find_part(call.run, part, wanted, 0);
  if (at == std::string_view::npos) {
    if (call.name == "index" || call.name == "rindex")
      call.run.fail(cat(call.name, ": the text does not have '", excerpt(wanted, 40), "'"));
    return JinjaValue::of(int64_t{-1});
  }
  return JinjaValue::of(window.first_character + static_cast<int64_t>(count_characters(part.substr(0, at))));
}

JinjaValue count_method(const TextCall& call) {
  const JinjaBoundArguments arguments = call.positional({"sub", "start", "end"});
  const std::string& wanted = arguments.need_text(0);
  const TextWindow window = window_of(call, arguments);
  if (!window.is_there) return JinjaValue::of(int64_t{0});
  const std::string_view part = std::string_view(call.text()).substr(window.begin, window.end - window.begin);
  if (wanted.empty()) return JinjaValue::of(count_characters(part) + 1);
  int64_t count = 0;
  for (size_t at = 0; (at = find_part(call.run, part, wanted, at)) != std::string::npos; at += wanted.size()) ++count;
  return JinjaValue::of(count);
}

JinjaValue join_method(const TextCall& call) {
  const JinjaBoundArguments arguments = call.positional({"iterable"});
  std::string made;
  bool is_first = true;
  for (const JinjaValue& item : items_of(call.run, arguments.need(0))) {
    if (!item.is_text()) call.run.fail(cat("join: expected texts, got ", shown_type(item)));
    if (call.self.is_safe_text() || item.is_safe_text())
      call.run.fail("lancet does not join texts that were marked as safe");
    call.run.charge_memory(static_cast<int64_t>(item.text().size() + call.text().size()));
    if (!std::exchange(is_first, false)) made += call.text();
    made += item.text();
  }
  return call.run.text(std::move(made));
}

JinjaValue partition_method(const TextCall& call) {
  const std::string& separator = call.positional({"sep"}).need_text(0);
  if (separator.empty()) call.run.fail(cat(call.name, ": an empty separator"));
  const bool is_right = call.name == "rpartition";
  const size_t at = is_right ? call.text().rfind(separator) : call.text().find(separator);
  if (at == std::string::npos) {
    const JinjaValue none = call.same("");
    return is_right ? call.run.tuple({none, none, call.self}) : call.run.tuple({call.self, none, none});
  }
  return call.run.tuple({call.same(call.text().substr(0, at)), call.same(separator),
                         call.same(call.text().substr(at + separator.size()))});
}

JinjaValue remove_method(const TextCall& call) {
  const std::string& affix = call.positional({"affix"}).need_text(0);
  const std::string& text = call.text();
  if (call.name == "removeprefix") return call.same(text.starts_with(affix) ? text.substr(affix.size()) : text);
  return call.same(text.ends_with(affix) ? text.substr(0, text.size() - affix.size()) : text);
}

JinjaValue pad_method(const TextCall& call) {
  const JinjaBoundArguments arguments = call.positional({"width", "fillchar"});
  const std::string fill = arguments.has(1) ? arguments.need_text(1) : " ";
  if (count_characters(fill) != 1) call.run.fail(cat(call.name, ": expected one character to fill with"));
  const int64_t missing = arguments.need_integer(0) - static_cast<int64_t>(count_characters(call.text()));
  if (missing <= 0) return call.same(call.text());
  call.run.charge_memory(missing * static_cast<int64_t>(fill.size()));
  int64_t left = call.name == "rjust" ? missing : 0;
  if (call.name == "center") left = missing / 2 + (missing & (arguments.need_integer(0) & 1));
  std::string made;
  for (int64_t i = 0; i < left; ++i) made += fill;
  made += call.text();
  for (int64_t i = left; i < missing; ++i) made += fill;
  return call.same(std::move(made));
}

JinjaValue zfill_method(const TextCall& call) {
  const int64_t width = call.positional({"width"}).need_integer(0);
  const std::string& text = call.text();
  const int64_t missing = width - static_cast<int64_t>(count_characters(text));
  if (missing <= 0) return call.same(text);
  call.run.charge_memory(missing);
  const size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  return call.same(text.substr(0, sign) + std::string(static_cast<size_t>(missing), '0') + text.substr(sign));
}

/// Whether the text is not empty, and `are_so` is true for all its characters.
JinjaValue all_characters(const TextCall& call, const std::function<bool(char32_t)>& are_so) {
  call.positional({});
  const std::string& text = call.text();
  bool holds = !text.empty();
  for (size_t at = 0; holds && at < text.size(); at = after_characters(text, at, 1))
    holds = are_so(decode_utf8_at(text, at).value);
  return JinjaValue::of(holds);
}

JinjaValue letters_method(const TextCall& call) {
  if (call.name == "isalpha") return all_characters(call, is_python_letter);
  if (call.name == "isspace") return all_characters(call, is_python_blank);
  if (call.name == "isdecimal") return all_characters(call, is_python_decimal);
  if (call.name == "isdigit") return all_characters(call, is_python_digit);
  return all_characters(call, [](char32_t c) { return is_python_letter(c) || is_python_number(c); });
}

JinjaValue case_test_method(const TextCall& call) {
  call.positional({});
  const bool wants_upper = call.name == "isupper";
  bool has_one = false;
  for (size_t at = 0; at < call.text().size(); at = after_characters(call.text(), at, 1)) {
    const char32_t character = decode_utf8_at(call.text(), at).value;
    const bool is_upper = is_python_upper(character), is_lower = is_python_lower(character);
    if (wants_upper ? is_lower : is_upper) return JinjaValue::of(false);
    has_one = has_one || is_upper || is_lower;
  }
  return JinjaValue::of(has_one);
}

JinjaValue ascii_method(const TextCall& call) {
  call.positional({});
  return JinjaValue::of(std::ranges::all_of(call.text(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

JinjaValue format_method(const TextCall& call) {
  if (call.self.is_safe_text()) call.run.fail("lancet does not format text that was marked as safe");
  return call.run.text(format_braces(call.run, call.text(), call.given));
}

const std::map<std::string_view, TextMethod>& text_methods() {
  static const std::map<std::string_view, TextMethod> kMethods{
      {"strip", strip_method},         {"lstrip", strip_method},
      {"rstrip", strip_method},        {"split", split_method},
      {"rsplit", split_method},        {"splitlines", splitlines_method},
      {"upper", case_method},          {"lower", case_method},
      {"title", case_method},          {"capitalize", case_method},
      {"swapcase", case_method},       {"replace", replace_method},
      {"startswith", affix_method},    {"endswith", affix_method},
      {"find", find_method},           {"rfind", find_method},
      {"index", find_method},          {"rindex", find_method},
      {"count", count_method},         {"join", join_method},
      {"partition", partition_method}, {"rpartition", partition_method},
      {"removeprefix", remove_method}, {"removesuffix", remove_method},
      {"ljust", pad_method},           {"rjust", pad_method},
      {"center", pad_method},          {"zfill", zfill_method},
      {"isalpha", letters_method},     {"isalnum", letters_method},
      {"isspace", letters_method},     {"isdecimal", letters_method},
      {"isdigit", letters_method},     {"isupper", case_test_method},
      {"islower", case_test_method},   {"isascii", ascii_method},
      {"format", format_method}};
  return kMethods;
}

}  // namespace

bool has_text_method(std::string_view name) { return text_methods().contains(name); }

JinjaValue call_text_method(JinjaRun& run, const JinjaValue& self, std::string_view name,
                            const JinjaArguments& arguments) {
  run.charge_bytes(self.text().size());
  const bool compares_marked =
      self.is_safe_text() && (name == "replace" || name == "partition" || name == "rpartition" || name == "ljust" ||
                              name == "rjust" || name == "center");
  if (compares_marked) run.fail(cat(name, ": lancet does not have it for text that was marked as safe"));
  return text_methods().at(name)({run, self, name, arguments});
}

}  // namespace lancet
