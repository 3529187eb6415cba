#include "pattern_syntax.h"

#include <algorithm>
#include <array>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Unicode's White_Space, for the inside of a class: PCRE2's own \s has U+180E besides.
constexpr std::string_view kWhiteSpace =
    R"(\x09-\x0D\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class PatternReader {
 public:
  PatternReader(std::string_view pattern, std::string_view where) : pattern_(pattern), where_(where) {}

  std::string translated() {
    while (at_ < pattern_.size()) element();
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw TokenizerError(cat(where_, ": \"", pattern_, "\", byte ", at_, ": ", what, " is not supported"));
  }
  bool next_is(std::string_view text) const { return pattern_.substr(at_, text.size()) == text; }
  void copy(size_t bytes) {
    out_ += pattern_.substr(at_, bytes);
    at_ += bytes;
  }

  void element() {
    switch (pattern_[at_]) {
      case '\\':
        return next_is("\\S") ? negated_white_space() : escape(Inside::kPattern);
      case '[':
        return character_class();
      case '(':
        return group();
      case '{':
        return interval();
      case '.':
      case '^':
      case '$':
        fail(cat("\"", pattern_[at_], "\""));
      default:
        copy(1);
    }
  }

  enum class Inside { kPattern, kClass };

  void negated_white_space() {
    out_ += cat("[^", kWhiteSpace, "]");
    at_ += 2;
  }

  void escape(Inside inside) {
    const char letter = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
    if (letter == 's') {
      out_ += inside == Inside::kClass ? std::string(kWhiteSpace) : cat("[", kWhiteSpace, "]");
      at_ += 2;
    } else if (letter == 'p' || letter == 'P') {
      category();
    } else if (letter == 'r' || letter == 'n' || letter == 't' ||
               (letter > ' ' && letter <= '~' && !is_letter(letter) && !is_digit(letter))) {
      copy(2);
    } else {
      fail("an escape of this kind");
    }
  }

  /// \p{L}, \p{Lu}: scripts and other properties mean different things in different versions.
  void category() {
    constexpr std::string_view kClasses = "CLMNPSZ";
    const size_t end = std::min(pattern_.find('}', at_), pattern_.size());
    const std::string_view name = pattern_.substr(at_, end - at_);  // "\p{Lu"
    const bool known = (name.size() == 4 || name.size() == 5) && name[2] == '{' &&
                       kClasses.find(name[3]) != std::string_view::npos &&
                       (name.size() == 4 || (name[4] >= 'a' && name[4] <= 'z'));
    if (!known) fail("a property other than a general category");
    copy(name.size() + 1);
  }

  void character_class() {
    copy(next_is("[^") ? 2 : 1);
    const size_t first = at_;
    for (; at_ < pattern_.size() && pattern_[at_] != ']';) {
      if (pattern_[at_] == '[' || next_is("&&")) fail("a class within a class");
      const size_t begin = at_;
      if (pattern_[at_] != '\\') {
        copy(1);
        continue;
      }
      const bool is_set = next_is("\\s") || next_is("\\p") || next_is("\\P");
      escape(Inside::kClass);
      const bool ends_a_range = begin > first && pattern_[begin - 1] == '-';
      const bool begins_a_range = next_is("-") && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']';
      if (is_set && (ends_a_range || begins_a_range)) fail("a range to or from a set of characters");
    }
    if (at_ == first) fail("a class that begins with \"]\"");
    copy(1);  // the end; where it is missing, PCRE2 says so
  }

  void group() {
    constexpr std::array<std::string_view, 3> kKinds{"(?:", "(?=", "(?!"};
    if (next_is("(?i:")) return literals_of_any_case();
    const auto kind = std::find_if(kKinds.begin(), kKinds.end(), [&](std::string_view text) { return next_is(text); });
    if (kind == kKinds.end() && (next_is("(?") || next_is("(*"))) fail("a group of this kind");
    copy(kind == kKinds.end() ? 1 : kind->size());
  }

  /// What case means to a category or a range differs, so that only letters and lists of them are taken.
  void literals_of_any_case() {
    copy(4);
    bool in_list = false;
    while (at_ < pattern_.size() && pattern_[at_] != ')') {
      const bool begins = !in_list && next_is("[") && at_ + 1 < pattern_.size() && is_letter(pattern_[at_ + 1]);
      const bool ends = in_list && next_is("]");
      const bool known = is_letter(pattern_[at_]) || (!in_list && (next_is("'") || next_is("|")));
      if (!known && !begins && !ends) fail("(?i: with more than letters, lists of letters, ' and |");
      in_list = begins || (in_list && !ends);
      copy(1);
    }
    copy(1);  // the end; where it is missing, or that of a list, PCRE2 says so
  }

  /// {m}, {m,}, {m,n}; one more mark after them is a possessive or lazy repeat in PCRE2, a second repeat in Oniguruma.
  void interval() {
    size_t end = at_ + 1;
    const auto digits = [&] {
      const size_t begin = end;
      while (end < pattern_.size() && is_digit(pattern_[end])) ++end;
      return end > begin;
    };
    bool known = digits();
    if (end < pattern_.size() && pattern_[end] == ',') {
      ++end;
      digits();
    }
    known = known && end < pattern_.size() && pattern_[end] == '}';
    const char after = end + 1 < pattern_.size() ? pattern_[end + 1] : '\0';
    if (!known || after == '+' || after == '?' || after == '*') fail("a repeat of this form");
    copy(end + 1 - at_);
  }

  std::string_view pattern_;
  std::string_view where_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string to_pcre2(std::string_view pattern, std::string_view where) {
  return PatternReader(pattern, where).translated();
}

}  // namespace lancet
