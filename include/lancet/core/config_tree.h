// A parsed YAML (or JSON) document: scalars, lists and maps with the line each began on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lancet {

struct ConfigTree {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  std::string scalar;                                       ///< kScalar: the text as written, quotes removed
  bool quoted = false;                                      ///< kScalar: was quoted, so never a number or a boolean
  std::vector<ConfigTree> items;                            ///< kList
  std::vector<std::pair<std::string, ConfigTree>> entries;  ///< kMap, in the document's order
  int64_t line = 0;  ///< 1-based, an entry's is its key's; 0: not from a document
  /// kScalar: a relative path is taken from here; empty: from the folder of the document that is read.
  std::filesystem::path folder;

  static ConfigTree text(std::string value);  ///< quoted scalar
  static ConfigTree number(int64_t value);
  static ConfigTree number(double value);  ///< shortest text that reads back to the same double
  static ConfigTree list(std::vector<ConfigTree> items);
  static ConfigTree map();

  const ConfigTree* find(std::string_view key) const;  ///< kMap; null when absent
  ConfigTree& set(std::string key, ConfigTree value);  ///< kMap: replaces or appends; a kNull becomes a map
  void erase(std::string_view key);                    ///< kMap: what is not there stays away
};

/// Drops the line numbers of a value that joins another document, beside whose lines its own mean nothing.
void forget_lines(ConfigTree& tree);

/// Keeps `folder` for a value that joins a document of another folder: its relative paths are still taken from there.
void keep_folder(ConfigTree& tree, const std::filesystem::path& folder);

/// Throws: ConfigError "source:line:column: ..." for text that is not YAML, a key that stands twice in a map, or an
/// anchor/alias.
ConfigTree parse_config(std::string_view text, std::string_view source);

/// Throws: ConfigError also when the file cannot be read.
ConfigTree load_config(const std::filesystem::path& path);

/// YAML text that parses to the same tree; short lists of scalars on one line.
std::string to_yaml(const ConfigTree& tree);

/// Returns the value on one line, for people: unquoted, whatever its length; a map's empty lists are left out.
std::string to_line(const ConfigTree& tree);

/// What keeps a value from its place: a path runs through something that is no map.
struct PathObstacle {
  std::string place;  ///< "values", "the document"
  std::string what;   ///< "list" or "single value"
};

/// Puts `value` at the end of a path of keys ("values", "lr"; at least one), making the maps between. Where something
/// is in the way the tree stays as it was.
[[nodiscard]] std::optional<PathObstacle> set_at(ConfigTree& tree, std::span<const std::string> keys, ConfigTree value);

/// Applies "a.b=value" (the value is YAML) as `--set` gives it; intermediate maps are made. A relative path in the
/// value is taken from the current folder, whatever the document's is. Throws: ConfigError "--set ...: ..." when there
/// is no '=', the path is empty, or it runs through a scalar or a list.
void apply_override(ConfigTree& tree, std::string_view assignment);

}  // namespace lancet
