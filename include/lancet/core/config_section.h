// Reads a ConfigTree strictly and by type. All problems of a document are collected and reported together. Every value
// that is read is recorded, defaults included; the records form the resolved document.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/config_tree.h"

namespace lancet {

/// Collects the problems found in one document.
class ConfigProblems {
 public:
  explicit ConfigProblems(std::string source) : source_(std::move(source)) {}
  /// Adds the message "source:line: path: what". The message leaves out line 0.
  void add(int64_t line, std::string_view path, std::string_view what);
  bool empty() const { return messages_.empty(); }
  /// Throws: ConfigError with all messages, one per line, if there are any.
  void throw_if_any() const;

 private:
  std::string source_;
  std::vector<std::string> messages_;
};

template <typename T>
struct ConfigRange {
  T min = std::numeric_limits<T>::lowest();
  T max = std::numeric_limits<T>::max();
};

/// Reads one map of the document, key by key. A reader without `fallback` adds a problem if the key is absent. After a
/// problem, a reader returns the fallback (or a zero value), so that reading continues and finds further problems. An
/// explicit null counts as absent.
class ConfigSection {
 public:
  /// `tree` and `problems` must outlive the section. `path` is the dotted path of the map in the document
  /// ("editor.values"; empty for the root). Adds a problem if `tree` is neither null nor a map.
  ConfigSection(const ConfigTree& tree, std::string path, ConfigProblems& problems);

  bool has(std::string_view key) const;
  int64_t integer(std::string_view key, ConfigRange<int64_t> range, std::optional<int64_t> fallback = {});
  double number(std::string_view key, ConfigRange<double> range, std::optional<double> fallback = {});
  /// Returns whether `key` is absent or "auto": its value is then chosen once the model is known.
  bool is_auto(std::string_view key);
  /// Returns whether the value is a map, for keys that also accept other kinds of values.
  bool is_map(std::string_view key);
  /// These three return nullopt if is_auto().
  std::optional<int64_t> integer_or_auto(std::string_view key, ConfigRange<int64_t> range);
  std::optional<double> number_or_auto(std::string_view key, ConfigRange<double> range);
  std::optional<std::vector<int64_t>> integers_or_auto(std::string_view key, ConfigRange<int64_t> range);
  bool boolean(std::string_view key, std::optional<bool> fallback = {});
  /// Reads text as it is written, with or without quotes: `target: 1998` is the text "1998".
  std::string text(std::string_view key, std::optional<std::string> fallback = {});
  /// Returns one of `choices`. Adds a problem for any other text, which names the nearest choice and lists all of them.
  std::string choice(std::string_view key, std::span<const std::string> choices,
                     std::optional<std::string> fallback = {});
  /// Reads a path. "~" is the home folder. A relative path is resolved against the value's own folder
  /// (ConfigTree::folder) if it has one, else against `base`. The absolute path is recorded.
  std::filesystem::path path(std::string_view key, const std::filesystem::path& base,
                             std::optional<std::filesystem::path> fallback = {});
  std::vector<int64_t> integers(std::string_view key, ConfigRange<int64_t> range,
                                std::optional<std::vector<int64_t>> fallback = {});
  std::vector<std::string> texts(std::string_view key, std::optional<std::vector<std::string>> fallback = {});
  /// Returns every entry of the map under `key` as a number (accept: {efficacy_prob: 0.9}); empty if the key is absent.
  std::vector<std::pair<std::string, double>> number_map(std::string_view key);
  /// Returns the map under `key`; an empty one if the key is absent.
  ConfigSection section(std::string_view key);
  /// Returns the value and records it unchanged; null if absent. For keys that take a list or a map.
  const ConfigTree* raw(std::string_view key);

  /// Call this instead of finish() if `key`, which decides what the other keys are, is absent or wrong. If `key` is
  /// absent, adds a problem for each key that may be a misspelling of it; all other keys are accepted.
  void abandon(std::string_view key);
  /// Replaces the value recorded for `key`: for example, a generated value replaces the request to generate it.
  void record(std::string_view key, ConfigTree value);
  /// Adds a problem at `key`'s line.
  void problem(std::string_view key, std::string_view what);
  /// Adds a problem for every key that was not read, here and in sub-sections, and suggests the nearest known key. Call
  /// this last; a second call does nothing.
  void finish();
  /// Returns everything read so far, with defaults filled in and with sub-sections.
  ConfigTree resolved() const;

 private:
  struct State;  // shared with sub-sections, so that they record into their parent
  std::shared_ptr<State> state_;
};

}  // namespace lancet
