#include "characters.h"

#include <utf8proc.h>
#include <algorithm>
#include <array>

#include "lancet/core/strings.h"
#include "special_cases.h"

namespace lancet {
namespace {

using CasePoint = utf8proc_int32_t;

utf8proc_category_t category_of(char32_t character) { return utf8proc_category(static_cast<CasePoint>(character)); }

struct CharacterRange {
  char32_t first, last;
};
/// Digits that are not decimals. Source: the Unicode Character Database, Numeric_Type=Digit.
constexpr CharacterRange kOtherDigits[] = {
    {0xB2, 0xB3},     {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},   {0x2070, 0x2070},
    {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247C},   {0x2488, 0x2490},
    {0x24EA, 0x24EA}, {0x24F5, 0x24FD},   {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},
    {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};

const SpecialCase* special_case_of(char32_t character) {
  const auto found = std::ranges::lower_bound(kSpecialCases, character, {}, &SpecialCase::character);
  return found != std::end(kSpecialCases) && found->character == character ? &*found : nullptr;
}

void append_upper(std::string& text, char32_t character) {
  if (const SpecialCase* special = special_case_of(character)) {
    text += special->upper;
  } else {
    append_character(text, static_cast<char32_t>(utf8proc_toupper(static_cast<CasePoint>(character))));
  }
}

void append_title(std::string& text, char32_t character) {
  if (const SpecialCase* special = special_case_of(character)) {
    text += special->title;
  } else {
    append_character(text, static_cast<char32_t>(utf8proc_totitle(static_cast<CasePoint>(character))));
  }
}

bool has_case(char32_t character) {
  return is_python_upper(character) || is_python_lower(character) || category_of(character) == UTF8PROC_CATEGORY_LT;
}

/// Whether the character can be inside a word, for the rule of the final sigma.
bool is_between_letters(char32_t character) {
  const auto category = category_of(character);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_LM || category == UTF8PROC_CATEGORY_SK ||
         std::u32string_view(U"'.:\u00B7\u2018\u2019\u2024\u2027").find(character) != std::u32string_view::npos;
}

std::u32string characters_of(std::string_view text) {
  std::u32string characters;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8_at(text, at);
    characters += point.value;
    at += std::max<size_t>(point.bytes, 1);
  }
  return characters;
}

/// Whether a sigma at `at` ends a word.
bool is_final_sigma(std::u32string_view text, size_t at) {
  size_t before = at;
  while (before > 0 && is_between_letters(text[before - 1])) --before;
  if (before == 0 || !has_case(text[before - 1])) return false;
  size_t after = at + 1;
  while (after < text.size() && is_between_letters(text[after])) ++after;
  return after == text.size() || !has_case(text[after]);
}

void append_lower(std::string& text, std::u32string_view all, size_t at) {
  constexpr char32_t kSigma = 0x3A3, kFinalSigma = 0x3C2, kDottedI = 0x130;
  const char32_t character = all[at];
  if (character == kSigma && is_final_sigma(all, at)) {
    append_character(text, kFinalSigma);
  } else if (character == kDottedI) {
    text += "i\u0307";
  } else {
    append_character(text, static_cast<char32_t>(utf8proc_tolower(static_cast<CasePoint>(character))));
  }
}

}  // namespace

bool is_python_blank(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool ends_python_line(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_python_letter(char32_t character) {
  const auto category = category_of(character);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_python_printable(char32_t character) {
  if (character == ' ') return true;
  const auto category = category_of(character);
  return category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS;
}

bool is_python_decimal(char32_t character) { return category_of(character) == UTF8PROC_CATEGORY_ND; }

bool is_python_digit(char32_t character) {
  return is_python_decimal(character) || std::ranges::any_of(kOtherDigits, [&](const CharacterRange& range) {
           return character >= range.first && character <= range.last;
         });
}

bool is_python_number(char32_t character) {
  const auto category = category_of(character);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool is_python_upper(char32_t character) { return utf8proc_isupper(static_cast<CasePoint>(character)) != 0; }
bool is_python_lower(char32_t character) { return utf8proc_islower(static_cast<CasePoint>(character)) != 0; }

void append_character(std::string& text, char32_t character) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto count = utf8proc_encode_char(static_cast<CasePoint>(character), bytes.data());
  text.append(bytes.begin(), bytes.begin() + count);
}

size_t blank_prefix_bytes(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = decode_utf8_at(text, at);
    if (point.bytes == 0 || !is_python_blank(point.value)) break;
    at += point.bytes;
  }
  return at;
}

std::string_view strip_left(std::string_view text) { return text.substr(blank_prefix_bytes(text)); }

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && !begins_character(text[last])) --last;
    if (!is_python_blank(decode_utf8_at(text, last).value)) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string to_upper(std::string_view text) {
  std::string upper;
  for (const char32_t character : characters_of(text)) append_upper(upper, character);
  return upper;
}

std::string to_lower(std::string_view text) {
  const std::u32string all = characters_of(text);
  std::string lower;
  for (size_t i = 0; i < all.size(); ++i) append_lower(lower, all, i);
  return lower;
}

std::string to_capitalized(std::string_view text) {
  const std::u32string all = characters_of(text);
  std::string made;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i == 0) {
      append_title(made, all[i]);
    } else {
      append_lower(made, all, i);
    }
  }
  return made;
}

std::string to_titled(std::string_view text) {
  const std::u32string all = characters_of(text);
  std::string made;
  bool is_in_word = false;
  for (size_t i = 0; i < all.size(); ++i) {
    if (is_in_word) {
      append_lower(made, all, i);
    } else {
      append_title(made, all[i]);
    }
    is_in_word = has_case(all[i]);
  }
  return made;
}

std::string to_swapped_case(std::string_view text) {
  const std::u32string all = characters_of(text);
  std::string made;
  for (size_t i = 0; i < all.size(); ++i) {
    if (is_python_upper(all[i])) {
      append_lower(made, all, i);
    } else if (is_python_lower(all[i])) {
      append_upper(made, all[i]);
    } else {
      append_character(made, all[i]);
    }
  }
  return made;
}

size_t after_characters(std::string_view text, size_t at, int64_t count) {
  while (count > 0 && at < text.size()) {
    ++at;
    while (at < text.size() && !begins_character(text[at])) ++at;
    --count;
  }
  return at;
}

}  // namespace lancet
