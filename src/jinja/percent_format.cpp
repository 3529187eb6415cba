// Computes text % values.
#include <cmath>

#include "characters.h"
#include "lancet/core/strings.h"
#include "number_format.h"
#include "operations.h"

namespace lancet {
namespace {

class PercentFormat {
 public:
  PercentFormat(JinjaRun& run, const std::string& text, const JinjaValue& values)
      : run_(run), text_(text), values_(values) {}

  std::string write() {
    while (at_ < text_.size()) {
      const size_t mark = std::min(text_.find('%', at_), text_.size());
      made_ += text_.substr(at_, mark - at_);
      at_ = mark;
      if (mark < text_.size()) write_value();
      run_.charge(1);
    }
    // values with items by key; an undefined value also counts as one
    const bool takes_any = values_.is(JinjaKind::kDict) || values_.is(JinjaKind::kList) ||
                           values_.is(JinjaKind::kRange) || values_.is_undefined();
    const size_t given = values_.is(JinjaKind::kTuple) ? values_.items().size() : takes_any ? 0 : 1;
    if (used_ < given && !(uses_names_ && takes_any)) run_.fail("'%': more values than the text has places for");
    return std::move(made_);
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  JinjaValue next_value() {
    if (values_.is(JinjaKind::kTuple)) {
      if (used_ >= values_.items().size()) run_.fail("'%': fewer values than the text has places for");
      return values_.items()[used_++];
    }
    if (used_++ > 0) run_.fail("'%': fewer values than the text has places for");
    return values_;
  }

  int64_t read_size() {
    if (peek() == '*') {
      ++at_;
      const JinjaValue value = next_value();
      if (!value.is_whole()) run_.fail("'%': expected a whole number for *");
      return value.integer();
    }
    int64_t size = 0;
    while (peek() >= '0' && peek() <= '9') {
      size = size * 10 + (text_[at_++] - '0');
      if (size > 1'000'000'000) run_.fail("'%': a width that is too large");
    }
    return size;
  }

  void write_value() {
    ++at_;
    std::optional<JinjaValue> named;
    if (peek() == '(') named = named_value();
    JinjaFormat format;
    for (; std::string_view("#0- +").find(peek()) != std::string_view::npos && at_ < text_.size(); ++at_) {
      if (peek() == '#') format.is_alternate = true;
      if (peek() == '0') format.pads_zeros = true;
      if (peek() == '-') format.align = '<';
      if (peek() == '+' || (peek() == ' ' && format.sign != '+')) format.sign = peek();
    }
    format.width = read_size();
    if (format.width < 0) {
      format.align = '<';
      format.width = -format.width;
    }
    if (peek() == '.') {
      ++at_;
      format.precision = std::max<int64_t>(read_size(), 0);
    }
    if (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    if (at_ >= text_.size()) run_.fail("'%': a format that does not end");
    format.type = text_[at_++];
    if (format.type == '%') {
      made_ += '%';
      return;
    }
    made_ += formatted(named ? *named : next_value(), format);
  }

  JinjaValue named_value() {
    size_t depth = 1, end = at_ + 1;
    for (; end < text_.size() && depth > 0; ++end)
      depth = text_[end] == '(' ? depth + 1 : text_[end] == ')' ? depth - 1 : depth;
    if (depth > 0) run_.fail("'%': a name in parentheses that does not end");
    const std::string name = text_.substr(at_ + 1, end - at_ - 2);
    at_ = end;
    uses_names_ = true;
    if (values_.is_undefined()) run_.fail_undefined(values_);
    if (!values_.is(JinjaKind::kDict)) run_.fail("'%': expected a dict for names in parentheses");
    const JinjaValue* found = values_.dict().find(JinjaRun::text_key(name));
    if (found == nullptr) run_.fail(cat("'%': the dict has no ", name));
    return *found;
  }

  std::string formatted(const JinjaValue& value, JinjaFormat format) {
    switch (format.type) {
      case 's':
      case 'r': {
        std::string text = format.type == 's' ? text_of(run_, value) : repr_of(run_, value);
        if (format.precision >= 0) text.resize(after_characters(text, 0, format.precision));
        if (format.align == '\0') format.align = '>';
        return padded_text(run_, std::move(text), format);
      }
      case 'd':
      case 'i':
      case 'u':
        format.type = 'd';
        return formatted_number(run_, whole_value(value), format);
      case 'x':
      case 'X':
      case 'o':
        if (!value.is_whole()) run_.fail(cat("'%", format.type, "': expected a whole number, got ", shown_type(value)));
        return formatted_number(run_, JinjaValue::of(value.integer()), format);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!value.is_number()) run_.fail(cat("'%", format.type, "': expected a number, got ", shown_type(value)));
        return formatted_number(run_, value, format);
      default:
        run_.fail(cat("'%", format.type, "': lancet does not have this format"));
    }
  }

  JinjaValue whole_value(const JinjaValue& value) const {
    if (!value.is_number()) run_.fail(cat("'%d': expected a number, got ", shown_type(value)));
    if (value.is_whole()) return JinjaValue::of(value.integer());
    if (!(std::abs(value.real()) < 9.2e18)) run_.fail("'%d': a number that 64 bits do not hold");
    return JinjaValue::of(static_cast<int64_t>(value.real()));
  }

  JinjaRun& run_;
  const std::string& text_;
  const JinjaValue& values_;
  size_t at_ = 0, used_ = 0;
  bool uses_names_ = false;
  std::string made_;
};

}  // namespace

std::string format_percent(JinjaRun& run, const std::string& text, const JinjaValue& values) {
  run.charge_bytes(text.size());
  return PercentFormat(run, text, values).write();
}

}  // namespace lancet
