// Splits, strips and replaces parts of texts.
#include <algorithm>

#include "characters.h"
#include "lancet/core/strings.h"
#include "methods.h"

namespace lancet {
namespace {

std::vector<std::string> split_at_blanks(std::string_view text, const JinjaSplit& how) {
  std::vector<std::string> parts;
  int64_t left = how.most;
  if (!how.is_from_right) {
    for (text = strip_left(text); !text.empty(); text = strip_left(text)) {
      if (left-- == 0) {
        parts.emplace_back(strip_right(text));
        if (how.most >= 0) parts.back() = std::string(text);  // the rest keeps its white space at the end
        break;
      }
      size_t end = 0;
      while (end < text.size() && !is_python_blank(decode_utf8_at(text, end).value))
        end = after_characters(text, end, 1);
      parts.emplace_back(text.substr(0, end));
      text.remove_prefix(end);
    }
    return parts;
  }
  for (text = strip_right(text); !text.empty(); text = strip_right(text)) {
    if (left-- == 0) {
      parts.emplace_back(text);
      break;
    }
    size_t begin = text.size();
    while (begin > 0) {
      size_t last = begin - 1;
      while (last > 0 && !begins_character(text[last])) --last;
      if (is_python_blank(decode_utf8_at(text, last).value)) break;
      begin = last;
    }
    parts.emplace_back(text.substr(begin));
    text = text.substr(0, begin);
  }
  std::ranges::reverse(parts);
  return parts;
}

bool has_character(std::string_view characters, char32_t wanted) {
  for (size_t at = 0; at < characters.size(); at = after_characters(characters, at, 1))
    if (decode_utf8_at(characters, at).value == wanted) return true;
  return false;
}

}  // namespace

std::vector<std::string> split_text(JinjaRun& run, std::string_view text, const JinjaSplit& how) {
  run.charge_bytes(text.size());
  run.charge_memory(static_cast<int64_t>(text.size()));
  if (!how.separator) return split_at_blanks(text, how);
  const std::string& separator = *how.separator;
  if (separator.empty()) run.fail("split: an empty separator");
  std::vector<std::string> parts;
  int64_t left = how.most;
  if (how.is_from_right) {
    while (left-- != 0) {
      const size_t at = text.rfind(separator);
      if (at == std::string_view::npos) break;
      run.charge_memory(48);
      parts.emplace_back(text.substr(at + separator.size()));
      text = text.substr(0, at);
    }
    parts.emplace_back(text);
    std::ranges::reverse(parts);
    return parts;
  }
  size_t begin = 0;
  while (left-- != 0) {
    const size_t at = find_part(run, text, separator, begin);
    if (at == std::string::npos) break;
    run.charge_memory(48);
    parts.emplace_back(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t next = after_characters(text, at, 1);
    if (!ends_python_line(decode_utf8_at(text, at).value)) {
      at = next;
      continue;
    }
    lines.emplace_back(text.substr(begin, at - begin));
    at = begin = text[at] == '\r' && next < text.size() && text[next] == '\n' ? next + 1 : next;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

std::string stripped_text(std::string_view text, const std::optional<std::string>& characters, JinjaSide side) {
  if (!characters) {
    if (side != JinjaSide::kRight) text = strip_left(text);
    if (side != JinjaSide::kLeft) text = strip_right(text);
    return std::string(text);
  }
  while (side != JinjaSide::kRight && !text.empty() && has_character(*characters, decode_utf8_at(text, 0).value))
    text.remove_prefix(after_characters(text, 0, 1));
  while (side != JinjaSide::kLeft && !text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && !begins_character(text[last])) --last;
    if (!has_character(*characters, decode_utf8_at(text, last).value)) break;
    text = text.substr(0, last);
  }
  return std::string(text);
}

std::string replaced_text(JinjaRun& run, std::string_view text, std::string_view from, std::string_view to,
                          int64_t most) {
  std::string made;
  const auto add = [&](std::string_view part) {
    run.charge_memory(static_cast<int64_t>(part.size()));
    made += part;
  };
  size_t begin = 0;
  if (from.empty()) {  // between all characters, and at both ends
    for (size_t at = 0; most != 0; --most) {
      run.charge(1);
      add(to);
      if (at >= text.size()) break;
      at = after_characters(text, at, 1);
      add(text.substr(begin, at - begin));
      begin = at;
    }
    add(text.substr(begin));
    return made;
  }
  for (; most != 0; --most) {
    const size_t at = find_part(run, text, from, begin);
    if (at == std::string::npos) break;
    run.charge(1);
    add(text.substr(begin, at - begin));
    add(to);
    begin = at + from.size();
  }
  add(text.substr(begin));
  return made;
}

}  // namespace lancet
