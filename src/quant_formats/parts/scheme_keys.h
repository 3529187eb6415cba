// Reads the keys of an object of quantization_config one by one. It collects the problems of their values, and the keys
// that nobody asked for.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/quant_formats/matrix_code.h"

namespace lancet {

/// Keeps the order of the file, because of two expressions for a module the first one applies.
using OrderedJson = nlohmann::ordered_json;

/// The problems of one configuration, and keys that the job allows to be unknown.
struct SchemeProblems {
  std::vector<std::string> found = {};
  std::span<const std::string> ignored_keys = {};
};

class SchemeKeys {
 public:
  /// `prefix`: the beginning of keys' names in messages. The object and the problems must outlive the reader.
  SchemeKeys(const OrderedJson& object, std::string prefix, SchemeProblems& problems);

  /// Returns null if the key is absent, or its value is null.
  const OrderedJson* find(std::string_view key);
  bool has(std::string_view key) { return find(key) != nullptr; }
  bool flag(std::string_view key, bool fallback);
  int64_t whole(std::string_view key, int64_t fallback);
  std::string text(std::string_view key, std::string_view fallback);
  std::vector<std::string> texts(std::string_view key);
  /// Reads a text that must be one of several. Case does not matter.
  std::string one_of(std::string_view key, std::string_view fallback, std::initializer_list<std::string_view> known);
  /// Reads a whole number above 0; returns 0 for -1, which means all numbers.
  int64_t group_size(std::string_view key, int64_t fallback);
  /// Reads two whole numbers above 0; nullopt if the key is absent.
  std::optional<ScaleBlock> block(std::string_view key);

  /// Accepts keys that do not change the meaning of the stored numbers.
  void harmless(std::span<const std::string_view> keys);
  /// Adds the problem that the value of `key` is not as expected.
  void problem(std::string_view key, std::string_view expected);
  /// Adds another problem about `key`.
  void refuse(std::string_view key, std::string_view why);
  /// Adds a problem for every key that has a value and was not asked for.
  void finish();

  const std::string& prefix() const { return prefix_; }
  SchemeProblems& problems() { return problems_; }

 private:
  const OrderedJson& object_;
  std::string prefix_;
  SchemeProblems& problems_;
  std::set<std::string, std::less<>> asked_;
};

/// Returns a value for messages: short, on one line.
std::string json_text(const OrderedJson& value);
/// Returns the text in lower case.
std::string lowered(std::string text);

}  // namespace lancet
