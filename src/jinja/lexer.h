// Splits a template's text into tokens: the text between tags, and the content of tags. Source: Jinja's documentation,
// "Template Designer Documentation", white space control.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lancet {

enum class JinjaTokenKind {
  kText,
  kTagBegin,
  kTagEnd,
  kPrintBegin,
  kPrintEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kSign,
  kEnd
};

struct JinjaToken {
  JinjaTokenKind kind = JinjaTokenKind::kEnd;
  int64_t line = 0;
  std::string text = {};  ///< text of a name, a string or a sign
  int64_t integer = 0;
  double real = 0;

  bool is_name(std::string_view name) const { return kind == JinjaTokenKind::kName && text == name; }
  bool is_sign(std::string_view sign) const { return kind == JinjaTokenKind::kSign && text == sign; }
  bool is_any_sign(std::initializer_list<std::string_view> signs) const {
    return kind == JinjaTokenKind::kSign && std::find(signs.begin(), signs.end(), text) != signs.end();
  }
};

/// Returns the tokens; the last one is kEnd. Throws: JinjaError.
std::vector<JinjaToken> tokenize_jinja(std::string_view source);

}  // namespace lancet
