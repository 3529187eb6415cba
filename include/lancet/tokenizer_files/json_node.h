// Strict reading of a JSON document: every mistake names the file and the place in it, and a key that is not known is a
// mistake.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lancet {

/// Throws: TokenizerError when the file cannot be read or parse_strict_json() refuses it.
nlohmann::json load_json(const std::filesystem::path& file);
/// Parses the file's text. Throws: TokenizerError when parse_strict_json() refuses it.
nlohmann::json parse_json(std::string_view text, const std::filesystem::path& file);

/// A value and its place. The document and the file name outlive it.
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, const std::filesystem::path& file) : value_(&value), file_(&file) {}

  /// Throws: TokenizerError "tokenizer: file: place: what".
  [[noreturn]] void fail(std::string_view what) const;
  /// "tokenizer: file: place".
  std::string where() const;

  bool is_null() const { return value_->is_null(); }
  bool is_text() const { return value_->is_string(); }
  bool is_object() const { return value_->is_object(); }
  bool is_list() const { return value_->is_array(); }
  const nlohmann::json& value() const { return *value_; }

  /// Present and not null.
  bool has(std::string_view key) const;
  /// Fails when the key is absent.
  JsonNode at(std::string_view key) const;
  /// Fails for a key that is not among `known`.
  void require_keys(std::initializer_list<std::string_view> known) const;

  const std::string& text() const;
  bool boolean() const;
  int64_t integer() const;  ///< >= 0
  std::vector<JsonNode> items() const;

  /// The value under `key`; nullopt where it is absent or null.
  std::optional<bool> find_boolean(std::string_view key) const {
    return has(key) ? std::optional(at(key).boolean()) : std::nullopt;
  }

 private:
  JsonNode(const nlohmann::json& value, const JsonNode& parent, const std::string& step);

  const nlohmann::json* value_;
  const std::filesystem::path* file_;
  std::string place_;
};

}  // namespace lancet
