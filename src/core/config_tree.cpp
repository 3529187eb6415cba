#include "lancet/core/config_tree.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <system_error>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/core/text_file.h"

namespace lancet {
namespace {

/// The parser's tree takes many times the text. More requests than fit in have a file of their own.
constexpr uint64_t kLargestConfig = 16'000'000;

ConfigTree plain_scalar(std::string text) {
  ConfigTree tree;
  tree.kind = ConfigTree::Kind::kScalar;
  tree.scalar = std::move(text);
  return tree;
}

std::vector<std::string> split_path(std::string_view path, const std::string& where) {
  std::vector<std::string> keys;
  for (size_t begin = 0;;) {
    const size_t end = path.find('.', begin);
    keys.emplace_back(path.substr(begin, end - begin));
    if (keys.back().empty())
      throw ConfigError(cat(where, ": the path '", path, "' has an empty part: expected keys joined by dots, as in ",
                            "editor.values.lr=0.5"));
    if (end == std::string_view::npos) return keys;
    begin = end + 1;
  }
}

}  // namespace

void forget_lines(ConfigTree& tree) {
  tree.line = 0;
  for (ConfigTree& item : tree.items) forget_lines(item);
  for (auto& [key, value] : tree.entries) forget_lines(value);
}

void keep_folder(ConfigTree& tree, const std::filesystem::path& folder) {
  tree.folder = folder;
  for (ConfigTree& item : tree.items) keep_folder(item, folder);
  for (auto& [key, value] : tree.entries) keep_folder(value, folder);
}

ConfigTree ConfigTree::text(std::string value) {
  ConfigTree tree = plain_scalar(std::move(value));
  tree.quoted = true;
  return tree;
}

ConfigTree ConfigTree::number(int64_t value) { return plain_scalar(std::to_string(value)); }

ConfigTree ConfigTree::number(double value) {
  if (!std::isfinite(value)) throw std::logic_error("a ConfigTree holds finite numbers only");
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) throw std::logic_error("a double needs more than 32 characters");
  return plain_scalar(std::string(text.data(), end));
}

ConfigTree ConfigTree::list(std::vector<ConfigTree> items) {
  ConfigTree tree;
  tree.kind = Kind::kList;
  tree.items = std::move(items);
  return tree;
}

ConfigTree ConfigTree::map() {
  ConfigTree tree;
  tree.kind = Kind::kMap;
  return tree;
}

const ConfigTree* ConfigTree::find(std::string_view key) const {
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const auto& each) { return each.first == key; });
  return entry == entries.end() ? nullptr : &entry->second;
}

ConfigTree& ConfigTree::set(std::string key, ConfigTree value) {
  if (kind == Kind::kNull) kind = Kind::kMap;
  if (kind != Kind::kMap) throw std::logic_error(cat("ConfigTree::set('", key, "') on a scalar or a list"));
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const auto& each) { return each.first == key; });
  if (entry != entries.end()) {
    entry->second = std::move(value);
    return entry->second;
  }
  return entries.emplace_back(std::move(key), std::move(value)).second;
}

void ConfigTree::erase(std::string_view key) {
  std::erase_if(entries, [&](const auto& entry) { return entry.first == key; });
}

ConfigTree load_config(const std::filesystem::path& path) {
  std::string text;
  try {
    text = load_text(path, kLargestConfig);
  } catch (const FileProblem& problem) {
    throw ConfigError(cat(path.string(), ": cannot be read: ", problem.what()));
  }
  return parse_config(text, path.string());
}

std::optional<PathObstacle> set_at(ConfigTree& tree, std::span<const std::string> keys, ConfigTree value) {
  ConfigTree* at = &tree;
  for (size_t depth = 0;; ++depth) {
    if (at->kind != ConfigTree::Kind::kNull && at->kind != ConfigTree::Kind::kMap)
      return PathObstacle{depth == 0 ? "the document" : join(keys.first(depth), "."),
                          at->kind == ConfigTree::Kind::kList ? "list" : "single value"};
    if (depth + 1 == keys.size()) break;
    const ConfigTree* next = at->find(keys[depth]);
    at = next != nullptr ? const_cast<ConfigTree*>(next) : &at->set(keys[depth], ConfigTree::map());
  }
  at->set(keys.back(), std::move(value));
  return std::nullopt;
}

void apply_override(ConfigTree& tree, std::string_view assignment) {
  const std::string where = cat("--set ", assignment);
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) throw ConfigError(cat(where, ": expected KEY.KEY=VALUE, found no '='"));
  const std::vector<std::string> keys = split_path(assignment.substr(0, equals), where);
  ConfigTree value = parse_config(assignment.substr(equals + 1), where);
  forget_lines(value);
  keep_folder(value, std::filesystem::current_path());

  if (const std::optional<PathObstacle> obstacle = set_at(tree, keys, std::move(value)))
    throw ConfigError(cat(where, ": ", obstacle->place, " is a ", obstacle->what,
                          ", expected a map; replace it as a whole: --set ", obstacle->place, "=..."));
}

}  // namespace lancet
