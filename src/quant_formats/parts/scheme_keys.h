// Keys of an object of quantization_config, read one by one. What is wrong with them is collected, and so are keys that
// nobody asked for.
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

/// JSON in the order of the file: of two expressions for one module the first holds.
using OrderedJson = nlohmann::ordered_json;

/// Problems of one configuration, and keys that may be unknown.
struct SchemeProblems {
  std::vector<std::string> found = {};
  std::span<const std::string> ignored_keys = {};
};

class SchemeKeys {
 public:
  /// `prefix`: what keys' names begin with in messages. The object and the problems outlive the reader.
  SchemeKeys(const OrderedJson& object, std::string prefix, SchemeProblems& problems);

  /// Absent, null: no value.
  const OrderedJson* find(std::string_view key);
  bool has(std::string_view key) { return find(key) != nullptr; }
  bool flag(std::string_view key, bool fallback);
  int64_t whole(std::string_view key, int64_t fallback);
  std::string text(std::string_view key, std::string_view fallback);
  std::vector<std::string> texts(std::string_view key);
  /// Reads a text that has to be one of some. Case does not matter.
  std::string one_of(std::string_view key, std::string_view fallback, std::initializer_list<std::string_view> known);
  /// A whole number above 0, or -1 for 0: all there are.
  int64_t group_size(std::string_view key, int64_t fallback);
  /// Two whole numbers above 0; nullopt: absent.
  std::optional<ScaleBlock> block(std::string_view key);

  /// Keys that do not change what the stored numbers mean.
  void harmless(std::span<const std::string_view> keys);
  /// Notes that the value of `key` is not what was expected.
  void problem(std::string_view key, std::string_view expected);
  /// Notes something else about `key`.
  void refuse(std::string_view key, std::string_view why);
  /// Notes every key that says something and was not asked for.
  void finish();

  const std::string& prefix() const { return prefix_; }
  SchemeProblems& problems() { return problems_; }

 private:
  const OrderedJson& object_;
  std::string prefix_;
  SchemeProblems& problems_;
  std::set<std::string, std::less<>> asked_;
};

/// A value as messages show it: short, on one line.
std::string json_text(const OrderedJson& value);
/// Returns the text without capital letters.
std::string lowered(std::string text);

}  // namespace lancet
