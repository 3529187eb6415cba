// Properties of characters as in Python's str: white space, letters, digits, upper and lower case.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lancet {

/// Whether str.isspace() is true for it.
bool is_python_blank(char32_t character);
/// Whether str.splitlines() ends a line there.
bool ends_python_line(char32_t character);
bool is_python_letter(char32_t character);
/// Whether str.isprintable() is true for it; repr() shows others as escapes.
bool is_python_printable(char32_t character);
/// Whether str.isdecimal() is true for it.
bool is_python_decimal(char32_t character);
/// Whether str.isdigit() is true for it: decimals, and digits such as ².
bool is_python_digit(char32_t character);
/// Whether it is any kind of number, for which str.isalnum() is true as for letters.
bool is_python_number(char32_t character);
bool is_python_upper(char32_t character);
bool is_python_lower(char32_t character);

void append_character(std::string& text, char32_t character);

/// Returns the number of bytes of white space at the beginning of a text.
size_t blank_prefix_bytes(std::string_view text);
std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
/// Converts the first character to upper case (title case), the others to lower case.
std::string to_capitalized(std::string_view text);
/// Converts each word as to_capitalized(). A word is a sequence of letters.
std::string to_titled(std::string_view text);
std::string to_swapped_case(std::string_view text);

/// Returns the byte at which the character begins that is `count` characters after `at`; the text's end if there are
/// fewer.
size_t after_characters(std::string_view text, size_t at, int64_t count);

}  // namespace lancet
