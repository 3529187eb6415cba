// text.format(values).
#include <algorithm>
#include <cmath>

#include "characters.h"
#include "lancet/core/strings.h"
#include "number_format.h"
#include "number_text.h"
#include "operations.h"

namespace lancet {
namespace {

bool is_all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

class BraceFormat {
 public:
  BraceFormat(JinjaRun& run, const JinjaArguments& given) : run_(run), given_(given) {}

  /// `depth`: 0, or 1 inside the part after a colon.
  std::string write(std::string_view text, int depth) {
    std::string made;
    for (size_t at = 0; at < text.size();) {
      run_.charge(1);
      const size_t mark = std::min(text.find_first_of("{}", at), text.size());
      made += text.substr(at, mark - at);
      if (mark == text.size()) break;
      if (mark + 1 < text.size() && text[mark + 1] == text[mark]) {
        made += text[mark];
        at = mark + 2;
        continue;
      }
      if (text[mark] == '}') run_.fail("format: a } that closes nothing");
      const size_t end = end_of_field(text, mark);
      made += field(text.substr(mark + 1, end - mark - 1), depth);
      at = end + 1;
    }
    return made;
  }

 private:
  size_t end_of_field(std::string_view text, size_t open) const {
    size_t depth = 0;
    bool is_in_brackets = false;
    for (size_t at = open; at < text.size(); ++at) {
      if (text[at] == '[' && depth == 1) is_in_brackets = true;
      if (text[at] == ']') is_in_brackets = false;
      if (is_in_brackets) continue;
      if (text[at] == '{') ++depth;
      if (text[at] == '}' && --depth == 0) return at;
    }
    run_.fail("format: a { that does not end");
  }

  std::string field(std::string_view inside, int depth) {
    if (depth > 1) run_.fail("format: fields within each other, more than two");
    size_t name_end = 0;
    for (bool is_in_brackets = false; name_end < inside.size(); ++name_end) {
      if (inside[name_end] == '[') is_in_brackets = true;
      if (inside[name_end] == ']') is_in_brackets = false;
      if (!is_in_brackets && (inside[name_end] == '!' || inside[name_end] == ':')) break;
      if (!is_in_brackets && inside[name_end] == '{') run_.fail("format: a { in a field's name");
    }
    JinjaValue value = named(inside.substr(0, name_end));
    std::string_view rest = inside.substr(name_end);
    if (rest.starts_with('!')) {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':')) run_.fail("format: expected one letter after !");
      if (rest[1] != 's' && rest[1] != 'r') run_.fail(cat("format: !", rest.substr(1, 1), ": lancet has !s and !r"));
      value = run_.text(rest[1] == 's' ? text_of(run_, value) : repr_of(run_, value));
      rest.remove_prefix(2);
    }
    return formatted(value, rest.empty() ? "" : write(rest.substr(1), depth + 1));
  }

  JinjaValue named(std::string_view name) {
    const size_t first_end = std::min(name.find_first_of(".["), name.size());
    JinjaValue value = argument(name.substr(0, first_end));
    for (size_t at = first_end; at < name.size();) {
      if (name[at] == '.') {
        const size_t end = std::min(name.find_first_of(".[", at + 1), name.size());
        if (end == at + 1) run_.fail("format: an empty attribute");
        value = attribute_of(run_, value, std::string(name.substr(at + 1, end - at - 1)));
        at = end;
        continue;
      }
      const size_t end = name.find(']', at);
      if (name[at] != '[' || end == std::string_view::npos || end == at + 1)
        run_.fail("format: expected [name] after a name");
      const std::string key(name.substr(at + 1, end - at - 1));
      value = item_of(run_, value,
                      is_all_digits(key) ? JinjaValue::of(read_python_integer(key, 10).value_or(-1)) : run_.text(key));
      at = end + 1;
      if (at < name.size() && name[at] != '.' && name[at] != '[') run_.fail("format: expected . or [ after ]");
    }
    return value;
  }

  JinjaValue argument(std::string_view name) {
    if (name.empty() || is_all_digits(name)) {
      const bool counts = name.empty();
      if ((counts && numbering_ == Numbering::kGiven) || (!counts && numbering_ == Numbering::kCounted))
        run_.fail("format: fields with and without numbers");
      numbering_ = counts ? Numbering::kCounted : Numbering::kGiven;
      const int64_t place = counts ? next_++ : read_python_integer(name, 10).value_or(-1);
      if (place < 0 || place >= static_cast<int64_t>(given_.positional.size()))
        run_.fail(cat("format: no value ", place));
      return given_.positional[static_cast<size_t>(place)];
    }
    const auto found =
        std::ranges::find(given_.named, name, [](const auto& one) { return std::string_view(one.first); });
    if (found == given_.named.end()) run_.fail(cat("format: no value of the name ", name));
    return found->second;
  }

  JinjaFormat parse_format(std::string_view spec) const {
    JinjaFormat format;
    constexpr std::string_view kAligns = "<>=^";
    const size_t first = after_characters(spec, 0, 1);
    if (first < spec.size() && kAligns.find(spec[first]) != std::string_view::npos) {
      format.fill = spec.substr(0, first);
      format.align = spec[first];
      spec.remove_prefix(first + 1);
    } else if (!spec.empty() && kAligns.find(spec[0]) != std::string_view::npos) {
      format.align = spec[0];
      spec.remove_prefix(1);
    }
    const auto take = [&](std::string_view letters) {
      if (spec.empty() || letters.find(spec[0]) == std::string_view::npos) return '\0';
      const char letter = spec[0];
      spec.remove_prefix(1);
      return letter;
    };
    const auto take_number = [&](int64_t fallback) {
      const size_t end = std::min(spec.find_first_not_of("0123456789"), spec.size());
      if (end == 0) return fallback;
      const std::optional<int64_t> number = read_python_integer(spec.substr(0, end), 10);
      if (!number || *number > 1'000'000'000) run_.fail("format: a width that is too large");
      spec.remove_prefix(end);
      return *number;
    };
    if (const char sign = take("+- ")) format.sign = sign;
    format.is_alternate = take("#") != '\0';
    format.pads_zeros = take("0") != '\0';
    format.width = take_number(0);
    format.grouping = take(",_");
    if (take(".") != '\0' && (format.precision = take_number(-1)) < 0) run_.fail("format: expected digits after .");
    if (spec.size() > 1) run_.fail(cat("format: '", spec, "' at the end of a format"));
    if (!spec.empty()) format.type = spec[0];
    return format;
  }

  std::string formatted(const JinjaValue& value, const std::string& spec) {
    if (spec.empty()) return text_of(run_, value);
    JinjaFormat format = parse_format(spec);
    const bool is_real_type =
        std::string_view("eEfFgG%").find(format.type) != std::string_view::npos && format.type != '\0';
    if (value.is_text()) return formatted_text(value, format);
    if (value.is_whole() && !value.is(JinjaKind::kBoolean) && !is_real_type) {
      if (format.type == '\0') format.type = 'd';
      if (std::string_view("dboxX").find(format.type) == std::string_view::npos || format.precision >= 0)
        run_.fail(cat("format: '", spec, "': not for a whole number, or lancet does not have it"));
      return formatted_number(run_, value, format);
    }
    if (!value.is_number() || !is_real_type)
      run_.fail(cat("format: '", spec, "': not for ", shown_type(value), ", or lancet does not have it"));
    return formatted_number(run_, JinjaValue::of(value.real()), format);
  }

  std::string formatted_text(const JinjaValue& value, const JinjaFormat& given) {
    JinjaFormat format = given;
    if ((format.type != '\0' && format.type != 's') || format.sign != '-' || format.is_alternate ||
        format.grouping != '\0' || format.align == '=')
      run_.fail("format: a number's format for a text");
    if (format.pads_zeros && format.align == '\0') format.fill = "0";
    std::string text = value.text();
    if (format.precision >= 0) text.resize(after_characters(text, 0, format.precision));
    return padded_text(run_, std::move(text), format);
  }

  enum class Numbering { kNone, kCounted, kGiven };

  JinjaRun& run_;
  const JinjaArguments& given_;
  Numbering numbering_ = Numbering::kNone;
  int64_t next_ = 0;
};

}  // namespace

std::string format_braces(JinjaRun& run, const std::string& text, const JinjaArguments& arguments) {
  run.charge_bytes(text.size());
  return BraceFormat(run, arguments).write(text, 0);
}

}  // namespace lancet
