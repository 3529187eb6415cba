// Writes a ConfigTree as YAML text that any reader understands: block maps, short lists on one line, double quotes.
#include <algorithm>
#include <array>
#include <cstdio>

#include "lancet/core/config_tree.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

using Kind = ConfigTree::Kind;

/// A flow list is written on one line up to this width.
constexpr size_t kLongestLine = 100;

enum class Context { kBlock, kFlow };

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

/// Whether a reader gives back exactly `text` if it is written without quotes.
bool can_be_plain(std::string_view text, Context context) {
  constexpr std::string_view kFlowIndicators = ",[]{}";
  constexpr std::string_view kIndicators = "-?:,[]{}#&*!|>'\"%@`";
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (text.empty() || is_one_of(text, {"~", "null", "Null", "NULL"})) return false;
  if (text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
  if (text.starts_with("---") || text.starts_with("...") || text.starts_with("\xef\xbb\xbf")) return false;
  if (std::any_of(text.begin(), text.end(), is_control)) return false;
  if (text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos) return false;
  if (context == Context::kFlow && text.find_first_of(kFlowIndicators) != std::string_view::npos) return false;
  if (kIndicators.find(text.front()) == std::string_view::npos) return true;
  // "-5" and "-x" are text, "- x" is an item of a list.
  return text.front() == '-' && text.size() > 1 && text[1] != ' ';
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned>(c));
      out += escape.data();
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string scalar_text(const ConfigTree& scalar, Context context) {
  return !scalar.quoted && can_be_plain(scalar.scalar, context) ? scalar.scalar : in_quotes(scalar.scalar);
}

std::string key_text(const std::string& key) { return can_be_plain(key, Context::kBlock) ? key : in_quotes(key); }

/// Returns the list on one line; nothing if an item is not a scalar, needs the block form to stay unquoted, or the line
/// gets too long.
std::string flow_list(const ConfigTree& list) {
  std::string out = "[";
  for (const ConfigTree& item : list.items) {
    const bool needs_block =
        !item.quoted && can_be_plain(item.scalar, Context::kBlock) && !can_be_plain(item.scalar, Context::kFlow);
    if (item.kind != Kind::kScalar || needs_block) return {};
    if (out.size() > 1) out += ", ";
    out += scalar_text(item, Context::kFlow);
  }
  out += "]";
  return out.size() <= kLongestLine ? out : std::string();
}

/// Returns what fits after "key: " or "- "; nothing if the value needs its own lines.
std::string inline_text(const ConfigTree& tree) {
  switch (tree.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kScalar:
      return scalar_text(tree, Context::kBlock);
    case Kind::kList:
      return flow_list(tree);
    case Kind::kMap:
      return tree.entries.empty() ? "{}" : "";
  }
  return {};
}

/// Writes a map or a list in block form. `first_indent` replaces the indentation of the first line: a map that is an
/// item of a list begins after the "- ".
void write_block(const ConfigTree& tree, size_t indent, std::string_view first_indent, std::string& out) {
  const std::string spaces(indent, ' ');
  std::string_view lead = first_indent;
  const auto write_value = [&](const std::string& label, const ConfigTree& value) {
    out += lead;
    out += label;
    lead = spaces;
    const std::string rest = inline_text(value);
    if (!rest.empty()) {
      out += " " + rest + "\n";
    } else if (label == "-") {
      write_block(value, indent + 2, " ", out);
    } else {
      out += "\n";
      write_block(value, indent + 2, std::string(indent + 2, ' '), out);
    }
  };
  for (const ConfigTree& item : tree.items) write_value("-", item);
  for (const auto& [key, value] : tree.entries) write_value(key_text(key) + ":", value);
}

}  // namespace

std::string to_yaml(const ConfigTree& tree) {
  const std::string line = inline_text(tree);
  if (!line.empty()) return line + "\n";
  std::string out;
  write_block(tree, 0, "", out);
  return out;
}

std::string to_line(const ConfigTree& tree) {
  std::vector<std::string> parts;
  switch (tree.kind) {
    case ConfigTree::Kind::kNull:
      return "null";
    case ConfigTree::Kind::kScalar:
      return tree.scalar;
    case ConfigTree::Kind::kList:
      for (const ConfigTree& item : tree.items) parts.push_back(to_line(item));
      return "[" + join(parts) + "]";
    case ConfigTree::Kind::kMap:
      for (const auto& [key, value] : tree.entries)
        if (value.kind != ConfigTree::Kind::kList || !value.items.empty()) parts.push_back(key + ": " + to_line(value));
      return "{" + join(parts) + "}";
  }
  return "";
}

}  // namespace lancet
