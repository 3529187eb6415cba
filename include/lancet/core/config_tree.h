// A parsed YAML (or JSON) document: scalars, lists and maps, each with the line on which it begins.
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
  std::string scalar;             ///< kScalar: the text as written, quotes removed
  bool quoted = false;            ///< kScalar: whether it was quoted, so that it is never a number or a boolean
  std::vector<ConfigTree> items;  ///< kList
  std::vector<std::pair<std::string, ConfigTree>> entries;  ///< kMap, in the document's order
  int64_t line = 0;  ///< 1-based; for an entry of a map, the line of its key; 0: the value is not from a document
  /// kScalar: the folder against which a relative path is resolved; empty: the folder of the document.
  std::filesystem::path folder;

  static ConfigTree text(std::string value);  ///< quoted scalar
  static ConfigTree number(int64_t value);
  static ConfigTree number(double value);  ///< shortest text that reads back to the same double
  static ConfigTree list(std::vector<ConfigTree> items);
  static ConfigTree map();

  const ConfigTree* find(std::string_view key) const;  ///< kMap; null when absent
  ConfigTree& set(std::string key, ConfigTree value);  ///< kMap: replaces or appends; a kNull becomes a map
  void erase(std::string_view key);                    ///< kMap: does nothing if the key is absent
};

/// Removes the line numbers of a value that is inserted into another document, where they would be meaningless.
void forget_lines(ConfigTree& tree);

/// Records `folder` in a value that is inserted into a document of another folder, so that the value's relative paths
/// are still resolved against `folder`.
void keep_folder(ConfigTree& tree, const std::filesystem::path& folder);

/// Parses YAML text. Throws: ConfigError "source:line:column: ..." for text that is not YAML, for a key that appears
/// twice in a map, and for an anchor or an alias.
ConfigTree parse_config(std::string_view text, std::string_view source);

/// Parses a file. Throws: ConfigError as parse_config() does, and if the file cannot be read.
ConfigTree load_config(const std::filesystem::path& path);

/// Returns YAML text that parses to the same tree. Short lists of scalars are written on one line.
std::string to_yaml(const ConfigTree& tree);

/// Returns the value on one line for people to read: without quotes, of any length. A map's empty lists are left out.
std::string to_line(const ConfigTree& tree);

/// Describes what blocks a path of keys: something on the path is not a map.
struct PathObstacle {
  std::string place;  ///< "values", "the document"
  std::string what;   ///< "list" or "single value"
};

/// Sets `value` at a path of keys ("values", "lr"; at least one key), and creates the maps between. If something blocks
/// the path, returns it and leaves the tree unchanged.
[[nodiscard]] std::optional<PathObstacle> set_at(ConfigTree& tree, std::span<const std::string> keys, ConfigTree value);

/// Applies an assignment "a.b=value" of `--set`; the value is YAML. Creates the maps between. A relative path in the
/// value is resolved against the current folder, not against the document's. Throws: ConfigError "--set ...: ..." if
/// there is no '=', if the path is empty, or if it runs through a scalar or a list.
void apply_override(ConfigTree& tree, std::string_view assignment);

}  // namespace lancet
