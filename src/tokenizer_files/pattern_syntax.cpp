#include "pattern_syntax.h"

#include <algorithm>
#include <array>
#include <vector>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/tokenizer_files/json_node.h"

namespace lancet {
namespace {

/// Unicode's White_Space, for the inside of a class. PCRE2's own \s also has U+180E.
constexpr std::string_view kWhiteSpace =
    R"(\x09-\x0D\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

/// Oniguruma's \w, for the inside of a class: letters, marks, digits, numbers that are letters, connectors, letters in
/// circles and squares, and (from its table for Latin-1) superscript numbers and fractions.
constexpr std::string_view kWord =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149})"
    R"(\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";

/// Scripts that the expressions of tokenizers name. Other properties differ between versions.
constexpr std::array<std::string_view, 14> kScripts{"Han",      "Hiragana", "Katakana",   "Hangul",  "Latin",
                                                    "Greek",    "Cyrillic", "Arabic",     "Hebrew",  "Thai",
                                                    "Bopomofo", "Armenian", "Devanagari", "Georgian"};

#if PCRE2_MAJOR > 10 || PCRE2_MINOR >= 40
// without it, characters that several scripts share would also belong to it
constexpr std::string_view kScript = "sc:";
#else
constexpr std::string_view kScript = "";
#endif

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/// The content of a class: characters for a class of PCRE2, and expressions that each match one character, for what
/// such a class cannot contain (negated classes, intersections).
struct ClassItems {
  std::string members;  ///< in the form of the inside of a PCRE2 class
  std::vector<std::string> others;

  bool is_empty() const { return members.empty() && others.empty(); }

  std::string expression() const {
    if (others.empty()) return cat("[", members, "]");
    std::string out = "(?:";
    if (!members.empty()) out += cat("[", members, "]|");
    for (size_t i = 0; i < others.size(); ++i) out += cat(i > 0 ? "|" : "", others[i]);
    return out + ")";
  }
};

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
  std::string_view take(size_t bytes) {
    const std::string_view taken = pattern_.substr(at_, bytes);
    at_ += taken.size();
    return taken;
  }
  void copy(size_t bytes) { out_ += take(bytes); }

  void element() {
    switch (pattern_[at_]) {
      case '\\':
        return escape();
      case '[':
        out_ += character_class();
        return;
      case '(':
        return group();
      case '{':
        return interval();
      case '.':
        return replace(1, R"([^\n])");
      case '^':  // begins a line, except an empty last one
        return replace(1, R"((?:\A|(?<=\n)(?!\z)))");
      case '$':
        return replace(1, R"((?=\n|\z))");
      default:
        copy(1);
    }
  }

  void replace(size_t bytes, std::string_view translation) {
    at_ += bytes;
    out_ += translation;
  }

  void escape() {
    if (next_is("\\A") || next_is("\\z")) return copy(2);
    if (at_ + 1 < pattern_.size() && pattern_[at_ + 1] >= '1' && pattern_[at_ + 1] <= '9') return back_reference();
    if (next_is("\\b"))
      return replace(2, cat("(?:(?<=[", kWord, "])(?![", kWord, "])|(?<![", kWord, "])(?=[", kWord, "]))"));
    ClassItems items;
    const bool is_set = class_escape(items);
    out_ += is_set || !items.others.empty() ? items.expression() : items.members;
  }

  /// \1 to \9. Groups that this translation adds have no numbers.
  void back_reference() {
    if (at_ + 2 < pattern_.size() && is_digit(pattern_[at_ + 2])) fail("a reference of two digits");
    out_ += cat("(?:", take(2), ")");
  }

  /// Reads an escape for characters. Returns whether it is a set of characters, and not a single one.
  bool class_escape(ClassItems& items) {
    const char letter = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
    const auto set = [&](std::string_view members, bool is_negated) {
      if (is_negated) {
        items.others.push_back(cat("[^", members, "]"));
      } else {
        items.members += members;
      }
      at_ += 2;
      return true;
    };
    switch (letter) {
      case 's':
      case 'S':
        return set(kWhiteSpace, letter == 'S');
      case 'w':
      case 'W':
        return set(kWord, letter == 'W');
      case 'd':
      case 'D':
        return set(R"(\p{Nd})", letter == 'D');
      case 'p':
      case 'P':
        items.members += property();
        return true;
      case 'x':
      case 'u':
        items.members += code_point(letter);
        return false;
      default:
        break;
    }
    const bool is_itself = letter > ' ' && letter <= '~' && !is_letter(letter) && !is_digit(letter);
    if (!is_itself && letter != 'r' && letter != 'n' && letter != 't' && letter != 'f') fail("an escape of this kind");
    items.members += take(2);
    return false;
  }

  /// \x41, \x{1F600}, \u00E9. A byte above \x7F would only be a part of a character.
  std::string code_point(char letter) {
    const size_t open = letter == 'x' && next_is("\\x{") ? 1 : 0;
    size_t end = at_ + 2 + open;
    const size_t begin = end;
    const size_t most = open != 0 ? 8 : letter == 'x' ? 2 : 4;
    while (end < pattern_.size() && end - begin < most && is_hex_digit(pattern_[end])) ++end;
    const std::string digits(pattern_.substr(begin, end - begin));
    const bool is_closed = open == 0 || (end < pattern_.size() && pattern_[end] == '}');
    if (digits.empty() || !is_closed || (open == 0 && digits.size() != most)) fail("an escape of this kind");
    const unsigned long value = std::stoul(digits, nullptr, 16);
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF) || (letter == 'x' && open == 0 && value > 0x7F))
      fail("a number that is no character's");
    at_ = end + open;
    return cat("\\x{", digits, "}");
  }

  /// \p{L}, \P{Lu}, \p{^L}, \p{Han}.
  std::string property() {
    constexpr std::string_view kCategories = "CLMNPSZ";
    const size_t end = std::min(pattern_.find('}', at_), pattern_.size());
    std::string_view name = pattern_.substr(at_, end - at_);  // "\p{Lu"
    if (name.size() < 4 || name[2] != '{') fail("a property other than a general category or a script");
    bool is_negated = name[1] == 'P';
    name.remove_prefix(3);
    if (name.front() == '^') {
      is_negated = !is_negated;
      name.remove_prefix(1);
    }
    const bool is_category = !name.empty() && name.size() <= 2 && kCategories.find(name[0]) != std::string_view::npos &&
                             (name.size() == 1 || (name[1] >= 'a' && name[1] <= 'z'));
    const bool is_script = std::find(kScripts.begin(), kScripts.end(), name) != kScripts.end();
    if (!is_category && !is_script) fail("a property other than a general category or a script");
    at_ = end + 1;
    return cat(is_negated ? "\\P{" : "\\p{", is_script ? kScript : "", name, "}");
  }

  /// Returns a class as a PCRE2 expression that matches one character. Oniguruma's classes can contain classes and
  /// intersections (&&).
  std::string character_class() {
    if (++depth_ > kDeepest) fail("a class within so many classes");
    const bool is_negated = next_is("[^");
    take(is_negated ? 2 : 1);
    if (next_is("]")) fail("a class that begins with \"]\"");
    std::string operands;
    ClassItems items = class_items();
    while (next_is("&&")) {
      if (items.is_empty()) fail("an intersection with nothing");
      take(2);
      if (next_is("^")) fail("\"^\" after &&");
      operands += cat("(?=", items.expression(), ")");
      items = class_items();
    }
    if (!next_is("]")) return cat("[", items.members);  // PCRE2 reports the missing end
    if (items.is_empty()) fail("an intersection with nothing");
    take(1);
    --depth_;
    if (operands.empty() && items.others.empty()) return cat(is_negated ? "[^" : "[", items.members, "]");
    const std::string whole = cat("(?:", operands, items.expression(), ")");
    return is_negated ? cat("(?:(?!", whole, ")(?s:.))") : whole;
  }

  /// What an item of a class can be for a "-" after it.
  enum class Before { kNothing, kCharacter, kHyphen, kSet };

  /// Reads the items up to the class's end or the next "&&".
  ClassItems class_items() {
    ClassItems items;
    Before before = Before::kNothing;
    while (at_ < pattern_.size() && !next_is("]") && !next_is("&&")) {
      if (next_is("[:")) fail("a class of POSIX");
      const size_t begin = at_;
      const bool is_hyphen = next_is("-");
      bool is_set = next_is("[");
      if (is_set) {
        add_class(items);
      } else if (next_is("\\")) {
        is_set = class_escape(items);
      } else {
        items.members += take(utf8_bytes(pattern_[at_]));
      }
      const bool ranges_from_set = is_hyphen && before == Before::kSet && !ends_class();
      if (ranges_from_set || (is_set && before == Before::kHyphen)) {
        at_ = begin;
        fail("a range to or from a set of characters");
      }
      if (is_set) {
        before = Before::kSet;
      } else if (before == Before::kHyphen) {
        before = Before::kNothing;  // a range, whose end cannot begin another one
      } else {
        before = is_hyphen && before == Before::kCharacter ? Before::kHyphen : Before::kCharacter;
      }
    }
    return items;
  }

  bool ends_class() const { return at_ >= pattern_.size() || next_is("]") || next_is("&&"); }

  /// Adds a class inside a class: its members become members of the outer one, unless it is more than a list, or a "-"
  /// at its edge would make a range there.
  void add_class(ClassItems& items) {
    const std::string inner = character_class();
    const bool is_list = inner.starts_with('[') && !inner.starts_with("[^") && !inner.starts_with("[-") &&
                         !inner.ends_with("-]") && !items.members.ends_with('-');
    if (is_list) {
      items.members += inner.substr(1, inner.size() - 2);
    } else {
      items.others.push_back(inner);
    }
  }

  void group() {
    constexpr std::array<std::string_view, 6> kKinds{"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
    if (next_is("(?i:")) return literals_of_any_case();
    const auto kind = std::find_if(kKinds.begin(), kKinds.end(), [&](std::string_view text) { return next_is(text); });
    if (kind == kKinds.end() && (next_is("(?") || next_is("(*"))) fail("a group of this kind");
    copy(kind == kKinds.end() ? 1 : kind->size());
  }

  /// Case has different meanings for categories and ranges, so only letters and lists of letters are accepted.
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
    copy(1);  // copies the end; if the end is missing, here or of a list, PCRE2 reports it
  }

  /// {m}, {m,}, {m,n}. A mark after them makes a possessive or lazy repeat in PCRE2, but a second repeat in Oniguruma.
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

  static constexpr int kDeepest = 8;

  std::string_view pattern_;
  std::string_view where_;
  size_t at_ = 0;
  int depth_ = 0;  ///< number of open classes
  std::string out_;
};

}  // namespace

std::string to_pcre2(std::string_view pattern, std::string_view where) {
  return PatternReader(pattern, where).translated();
}

}  // namespace lancet
