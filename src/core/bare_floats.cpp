#include "lancet/core/bare_floats.h"

#include <algorithm>
#include <optional>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr std::string_view kBareFloats[] = {"Infinity", "-Infinity", "NaN"};

/// Returns the length of the string that `text` begins with, both quotes counted; one that does not end goes on to the
/// end of the text.
size_t string_length(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
  }
  return text.size();
}

bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

bool take_token(std::string_view& text, std::string_view token) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return take(text, token);
}

/// Takes the bare float that `text` begins with, and returns it as an object.
std::optional<std::string> take_bare(std::string_view& text) {
  for (const std::string_view name : kBareFloats)
    if (take(text, name)) return cat("{\"__float__\": \"", name, "\"}");
  return std::nullopt;
}

/// Takes the object of a float that `text` begins with, and returns it bare.
std::optional<std::string> take_object(std::string_view& text) {
  for (const std::string_view name : kBareFloats) {
    std::string_view rest = text;
    if (!take(rest, "{") || !take_token(rest, "\"__float__\"") || !take_token(rest, ":") ||
        !take_token(rest, cat('"', name, '"')) || !take_token(rest, "}"))
      continue;
    text = rest;
    return std::string(name);
  }
  return std::nullopt;
}

/// Replaces, outside of strings, what `replacement` takes.
template <typename Take>
std::string replaced(std::string_view text, const Take& replacement) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (const std::optional<std::string> other = replacement(text)) {
      out += *other;
      continue;
    }
    const size_t length = text.front() == '"' ? string_length(text) : 1;
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

std::string bare_floats_as_objects(std::string_view json) { return replaced(json, take_bare); }

std::string objects_as_bare_floats(std::string_view json) { return replaced(json, take_object); }

}  // namespace lancet
