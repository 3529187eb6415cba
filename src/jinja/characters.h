// What Python's str says of characters: white space, letters, digits, upper and lower case.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lancet {

/// Whether str.isspace() has it for white space.
bool is_python_blank(char32_t character);
/// Whether str.splitlines() ends a line there.
bool ends_python_line(char32_t character);
bool is_python_letter(char32_t character);
/// Whether str.isprintable() is true of it: repr() shows others as escapes.
bool is_python_printable(char32_t character);
/// Whether str.isdecimal() is true of it.
bool is_python_decimal(char32_t character);
/// Whether str.isdigit() is true of it: decimals, and digits such as ².
bool is_python_digit(char32_t character);
/// Whether it is a number of any kind: str.isalnum() has them beside letters.
bool is_python_number(char32_t character);
bool is_python_upper(char32_t character);
bool is_python_lower(char32_t character);

void append_character(std::string& text, char32_t character);

/// Bytes of the white space that a text begins with.
size_t blank_prefix_bytes(std::string_view text);
std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
/// The first character in upper case (title case), the others in lower case.
std::string to_capitalized(std::string_view text);
/// Each word as to_capitalized() has it; words are what letters stand together.
std::string to_titled(std::string_view text);
std::string to_swapped_case(std::string_view text);

/// Bytes where the character `count` characters after `at` begins; the text's end if it has fewer.
size_t after_characters(std::string_view text, size_t at, int64_t count);

}  // namespace lancet
