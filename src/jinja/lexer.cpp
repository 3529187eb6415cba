#include "lexer.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "characters.h"
#include "lancet/core/strings.h"
#include "lancet/jinja/jinja_template.h"
#include "string_literal.h"

namespace lancet {
namespace {

constexpr std::string_view kSigns[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                       "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Returns the text with "\n" as the only line end, and without the last line end.
std::string unified_lines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class JinjaLexer {
 public:
  explicit JinjaLexer(std::string_view source) : source_(unified_lines(source)) {}

  std::vector<JinjaToken> run() {
    while (at_ < source_.size()) read_text();
    put(JinjaTokenKind::kEnd);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw JinjaError(JinjaError::Cause::kTemplate, reason, line_);
  }

  char peek(size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  bool is_at(std::string_view text) const { return std::string_view(source_).substr(at_).starts_with(text); }

  void advance(size_t to) {
    line_ +=
        std::count(source_.begin() + static_cast<ptrdiff_t>(at_), source_.begin() + static_cast<ptrdiff_t>(to), '\n');
    begins_line_ = to > 0 && source_[to - 1] == '\n';
    at_ = to;
  }

  JinjaToken& put(JinjaTokenKind kind, std::string text = {}) {
    tokens_.push_back({.kind = kind, .line = line_, .text = std::move(text)});
    return tokens_.back();
  }

  size_t after_blanks(size_t at) const { return at + blank_prefix_bytes(std::string_view(source_).substr(at)); }

  /// Adds the text before a tag that begins with `sign`. `is_print`: the tag has an expression, and blanks before it
  /// stay.
  void put_text(std::string_view text, char sign, JinjaTokenKind tag) {
    std::string_view kept = text;
    if (sign == '-') {
      kept = strip_right(text);
    } else if (sign != '+' && tag != JinjaTokenKind::kPrintBegin) {
      const size_t line_begin = text.rfind('\n') + 1;  // 0: the text has no line end
      const std::string_view last = text.substr(line_begin);
      if ((line_begin > 0 || begins_line_) && !last.empty() && blank_prefix_bytes(last) == last.size())
        kept = text.substr(0, line_begin);
    }
    if (!kept.empty()) put(JinjaTokenKind::kText, std::string(kept));
  }

  /// Reads up to the next tag, and the tag's beginning.
  void read_text() {
    size_t open = source_.find('{', at_);
    while (open != std::string::npos &&
           (open + 1 >= source_.size() || std::string_view("{%#").find(source_[open + 1]) == std::string_view::npos))
      open = source_.find('{', open + 1);
    if (open == std::string::npos) {
      put(JinjaTokenKind::kText, source_.substr(at_));
      advance(source_.size());
      return;
    }
    const char kind = source_[open + 1];
    const char next = open + 2 < source_.size() ? source_[open + 2] : '\0';
    const char sign = next == '-' || next == '+' ? next : '\0';
    const std::string_view text = std::string_view(source_).substr(at_, open - at_);
    const JinjaTokenKind tag = kind == '{' ? JinjaTokenKind::kPrintBegin : JinjaTokenKind::kTagBegin;
    put_text(text, sign, tag);
    advance(open);
    const size_t inside = open + (sign == '\0' ? 2 : 3);
    if (kind == '#') return skip_comment(inside);
    if (kind == '%' && read_raw(inside)) return;
    put(tag);
    advance(inside);
    read_inside(kind == '{' ? "}}" : "%}");
  }

  /// Returns where the end of a tag at `at` ends, with the white space that it removes; nullopt if there is no end of a
  /// tag.
  std::optional<size_t> end_of_tag(size_t at, std::string_view close) const {
    const std::string_view rest = std::string_view(source_).substr(at);
    const bool is_print = close == "}}";
    if (rest.starts_with('-') && rest.substr(1).starts_with(close)) return after_blanks(at + 1 + close.size());
    if (!is_print && rest.starts_with('+') && rest.substr(1).starts_with(close)) return at + 1 + close.size();
    if (!rest.starts_with(close)) return std::nullopt;
    const size_t end = at + close.size();
    return !is_print && end < source_.size() && source_[end] == '\n' ? end + 1 : end;
  }

  void skip_comment(size_t inside) {
    for (size_t at = inside; at < source_.size(); ++at)
      if (source_[at] == '#' || source_[at] == '+' || source_[at] == '-')
        if (const std::optional<size_t> end = end_of_tag(at, "#}")) return advance(*end);
    fail("a comment {# that does not end: expected #}");
  }

  /// Reads {% raw %} ... {% endraw %}, whose text stays unchanged.
  bool read_raw(size_t inside) {
    size_t at = after_blanks(inside);
    if (source_.compare(at, 3, "raw") != 0) return false;
    at = after_blanks(at + 3);
    const bool strips = at < source_.size() && source_[at] == '-';
    if (source_.compare(at + (strips ? 1 : 0), 2, "%}") != 0) return false;
    const size_t begin = strips ? after_blanks(at + 3) : at + 2;
    advance(begin);
    for (size_t open = source_.find("{%", begin); open != std::string::npos; open = source_.find("{%", open + 1)) {
      const char next = open + 2 < source_.size() ? source_[open + 2] : '\0';
      const char sign = next == '-' || next == '+' ? next : '\0';
      size_t word = after_blanks(open + (sign == '\0' ? 2 : 3));
      if (source_.compare(word, 6, "endraw") != 0) continue;
      const std::optional<size_t> end = end_of_tag(after_blanks(word + 6), "%}");
      if (!end) continue;
      put_text(std::string_view(source_).substr(begin, open - begin), sign, JinjaTokenKind::kTagBegin);
      advance(*end);
      return true;
    }
    fail("a tag {% raw %} that does not end: expected {% endraw %}");
  }

  void read_inside(std::string_view close) {
    std::string open_brackets;  // the brackets that close them
    while (at_ < source_.size()) {
      if (open_brackets.empty()) {
        if (const std::optional<size_t> end = end_of_tag(at_, close)) {
          put(close == "}}" ? JinjaTokenKind::kPrintEnd : JinjaTokenKind::kTagEnd);
          return advance(*end);
        }
      }
      if (const size_t next = after_blanks(at_); next != at_) {
        advance(next);
        continue;
      }
      read_token(open_brackets);
    }
  }

  void read_token(std::string& open_brackets) {
    const char c = peek();
    if (is_digit(c)) return read_number();
    if (begins_name(c)) {
      size_t end = at_;
      while (end < source_.size() && (begins_name(source_[end]) || is_digit(source_[end]))) ++end;
      if (end < source_.size() && static_cast<unsigned char>(source_[end]) >= 0x80)
        at_ = end;
      else
        return take(JinjaTokenKind::kName, end);
    } else if (c == '\'' || c == '"') {
      return read_string(c);
    } else {
      for (const std::string_view sign : kSigns) {
        if (!is_at(sign)) continue;
        balance(sign, open_brackets);
        return take(JinjaTokenKind::kSign, at_ + sign.size());
      }
    }
    const CodePoint point = decode_utf8_at(source_, at_);
    fail(cat("expected a name, a number, a text in quotes or a sign, got '",
             source_.substr(at_, std::max<size_t>(point.bytes, 1)), "'"));
  }

  void take(JinjaTokenKind kind, size_t end) {
    put(kind, source_.substr(at_, end - at_));
    advance(end);
  }

  void balance(std::string_view sign, std::string& open_brackets) const {
    if (sign == "(") open_brackets += ')';
    if (sign == "[") open_brackets += ']';
    if (sign == "{") open_brackets += '}';
    if (sign != ")" && sign != "]" && sign != "}") return;
    if (open_brackets.empty()) fail(cat("'", sign, "' closes nothing"));
    if (open_brackets.back() != sign[0]) fail(cat("expected '", open_brackets.back(), "', got '", sign, "'"));
    open_brackets.pop_back();
  }

  void read_string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail(cat("a text in quotes that does not end: expected ", quote));
    std::string value;
    try {
      value = read_jinja_literal(std::string_view(source_).substr(at_ + 1, end - at_ - 1));
    } catch (const std::invalid_argument& problem) {
      fail(problem.what());
    }
    put(JinjaTokenKind::kString, std::move(value));
    advance(end + 1);
  }

  /// Returns the end of digits, between which there may be single underscores.
  template <typename IsDigit>
  size_t after_digits(size_t at, const IsDigit& is_one) const {
    const auto has = [&](size_t place) { return place < source_.size() && is_one(source_[place]); };
    if (!has(at)) return at;
    for (++at;;) {
      if (has(at))
        ++at;
      else if (at < source_.size() && source_[at] == '_' && has(at + 1))
        at += 2;
      else
        return at;
    }
  }

  void read_number() {
    const bool follows_dot = at_ > 0 && source_[at_ - 1] == '.';
    const size_t whole = after_digits(at_, is_digit);
    size_t end = whole;
    if (!follows_dot) {
      if (end < source_.size() && source_[end] == '.') {
        const size_t fraction = after_digits(end + 1, is_digit);
        if (fraction > end + 1) end = fraction;
      }
      if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
        size_t digits = end + 1;
        if (digits < source_.size() && (source_[digits] == '+' || source_[digits] == '-')) ++digits;
        const size_t exponent = after_digits(digits, is_digit);
        if (exponent > digits) end = exponent;
      }
    }
    std::string text = source_.substr(at_, end - at_);
    std::erase(text, '_');
    if (end > whole) {
      put(JinjaTokenKind::kFloat).real = std::strtod(text.c_str(), nullptr);
      return advance(end);
    }
    read_integer(whole, text);
  }

  void read_integer(size_t whole, std::string text) {
    int base = 10;
    const char mark = static_cast<char>(peek(1) | 0x20);
    if (peek() == '0' && (mark == 'x' || mark == 'b' || mark == 'o')) {
      const size_t digits = at_ + 2 + (peek(2) == '_' ? 1 : 0);
      const auto is_one = [mark](char c) {
        if (mark == 'x') return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
        return c >= '0' && c <= (mark == 'b' ? '1' : '7');
      };
      if (const size_t end = after_digits(digits, is_one); end > digits) {
        text = source_.substr(digits, end - digits);
        std::erase(text, '_');
        base = mark == 'x' ? 16 : mark == 'o' ? 8 : 2;
        whole = end;
      }
    }
    // only zeros may begin with a zero: 007 would be 00 and 7, which is no expression
    if (base == 10 && text[0] == '0') {
      whole = after_digits(at_, [](char c) { return c == '0'; });
      text = "0";
    }
    int64_t value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value, base).ec != std::errc())
      fail(cat(text, ": lancet counts with whole numbers of 64 bits"));
    put(JinjaTokenKind::kInteger).integer = value;
    advance(whole);
  }

  const std::string source_;
  size_t at_ = 0;
  int64_t line_ = 1;
  bool begins_line_ = true;
  std::vector<JinjaToken> tokens_;
};

}  // namespace

std::vector<JinjaToken> tokenize_jinja(std::string_view source) { return JinjaLexer(source).run(); }

}  // namespace lancet
