// Strict typed reading of a ConfigTree. Every problem of a document is collected and reported at once; every value that
// is read, defaults included, is recorded, so that the resolved document falls out of reading it.
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

/// The problems found so far in one document.
class ConfigProblems {
 public:
  explicit ConfigProblems(std::string source) : source_(std::move(source)) {}
  /// Adds "source:line: path: what"; line 0 is left out.
  void add(int64_t line, std::string_view path, std::string_view what);
  bool empty() const { return messages_.empty(); }
  /// Throws: ConfigError with all messages, one per line, when there are any.
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

/// One map of the document, read key by key. A reader without `fallback` adds a problem when the key is absent; after
/// any problem it returns the fallback (or a zero value), so that reading goes on to the next problem. An explicit null
/// counts as absent.
class ConfigSection {
 public:
  /// `tree` and `problems` outlive the section. `path` is the dotted place ("editor.values"; empty for the root).
  /// A tree that is neither null nor a map is a problem.
  ConfigSection(const ConfigTree& tree, std::string path, ConfigProblems& problems);

  bool has(std::string_view key) const;
  int64_t integer(std::string_view key, ConfigRange<int64_t> range, std::optional<int64_t> fallback = {});
  double number(std::string_view key, ConfigRange<double> range, std::optional<double> fallback = {});
  /// Whether `key` is "auto", or absent: what it stands for is chosen when the model is known.
  bool is_auto(std::string_view key);
  /// Whether it is a map, where other things than maps would do too.
  bool is_map(std::string_view key);
  /// nullopt: is_auto().
  std::optional<int64_t> integer_or_auto(std::string_view key, ConfigRange<int64_t> range);
  std::optional<double> number_or_auto(std::string_view key, ConfigRange<double> range);
  std::optional<std::vector<int64_t>> integers_or_auto(std::string_view key, ConfigRange<int64_t> range);
  bool boolean(std::string_view key, std::optional<bool> fallback = {});
  /// Reads text as it is written, with or without quotes: `target: 1998` is the text "1998".
  std::string text(std::string_view key, std::optional<std::string> fallback = {});
  /// One of `choices`; a problem names the nearest and all of them.
  std::string choice(std::string_view key, std::span<const std::string> choices,
                     std::optional<std::string> fallback = {});
  /// "~" is the home folder; a relative path is taken from the value's own folder, where it has one, else from `base`.
  /// Recorded as the absolute path.
  std::filesystem::path path(std::string_view key, const std::filesystem::path& base,
                             std::optional<std::filesystem::path> fallback = {});
  std::vector<int64_t> integers(std::string_view key, ConfigRange<int64_t> range,
                                std::optional<std::vector<int64_t>> fallback = {});
  std::vector<std::string> texts(std::string_view key, std::optional<std::vector<std::string>> fallback = {});
  /// Every entry of the map under `key` as a number (accept: {efficacy_prob: 0.9}); empty when absent.
  std::vector<std::pair<std::string, double>> number_map(std::string_view key);
  /// The map under `key`; empty when absent.
  ConfigSection section(std::string_view key);
  /// The value as it stands, recorded unchanged; null when absent. For places that take a list or a map.
  const ConfigTree* raw(std::string_view key);

  /// Takes the place of finish() where `key`, which decides what the others are, is wrong already: of these only one
  /// that may be `key` misspelt is a problem.
  void abandon(std::string_view key);
  /// Replaces what was recorded for `key` (a generated value takes the place of the request to generate it).
  void record(std::string_view key, ConfigTree value);
  /// Adds a problem at `key`'s line.
  void problem(std::string_view key, std::string_view what);
  /// Adds a problem for every key that was not read, with the nearest known one, here and in sub-sections. Call last; a
  /// second call does nothing.
  void finish();
  /// Everything read so far with defaults filled in, sub-sections included.
  ConfigTree resolved() const;

 private:
  struct State;  // shared with sub-sections, so that they record into their parent
  std::shared_ptr<State> state_;
};

}  // namespace lancet
