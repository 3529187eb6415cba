// Reads JSON documents strictly: every error names the file and the place in it, and an unknown key is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/strings.h"

namespace lancet {

/// Reads a JSON file. Throws: TokenizerError when the file cannot be read or parse_strict_json() refuses it.
nlohmann::json load_json(const std::filesystem::path& file);
/// Parses the file's text. Throws: TokenizerError when parse_strict_json() refuses it.
nlohmann::json parse_json(std::string_view text, const std::filesystem::path& file);

/// A JSON value and its place. The document and the file name must outlive it.
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, const std::filesystem::path& file) : value_(&value), file_(&file) {}

  /// Throws: TokenizerError "tokenizer: file: place: what".
  [[noreturn]] void fail(std::string_view what) const;
  /// Returns "tokenizer: file: place".
  std::string where() const;

  bool is_null() const { return value_->is_null(); }
  bool is_text() const { return value_->is_string(); }
  bool is_object() const { return value_->is_object(); }
  bool is_list() const { return value_->is_array(); }
  const nlohmann::json& value() const { return *value_; }

  /// Whether the key is present and its value is not null.
  bool has(std::string_view key) const;
  /// Returns the value of the key. Fails when the key is absent.
  JsonNode at(std::string_view key) const;
  /// Fails for a key that is not among `known`.
  void require_keys(std::initializer_list<std::string_view> known) const;

  const std::string& text() const;
  bool boolean() const;
  int64_t integer() const;  ///< >= 0
  std::vector<JsonNode> items() const;

  /// Returns the boolean value of the key; nullopt if the key is absent or null.
  std::optional<bool> find_boolean(std::string_view key) const {
    return has(key) ? std::optional(at(key).boolean()) : std::nullopt;
  }

 private:
  JsonNode(const nlohmann::json& value, const JsonNode& parent, const std::string& step);

  const nlohmann::json* value_;
  const std::filesystem::path* file_;
  std::string place_;
};

// UTF-8 functions for the tokenizers: strict validation, white space, and bytes that may not be text.

/// Checks that the text is valid UTF-8. Throws: TokenizerError with the byte position.
void require_utf8(std::string_view text);

/// Returns the length of the character that begins with `lead`, in valid text.
size_t utf8_bytes(char lead);

/// Whether the character has Unicode's White_Space property.
bool is_white_space(char32_t code_point);

/// Keeps valid characters, and replaces each byte that is not part of one by U+FFFD.
std::string replace_invalid_utf8(std::string_view bytes);

/// Does the same, but replaces all bytes of a character that begins and then breaks off by a single U+FFFD (Unicode,
/// "maximal subpart").
std::string replace_broken_utf8(std::string_view bytes);

// The files of a model's tokenizer.

/// Whether there is anything with this name. If it is not a readable file, reading it reports the error.
bool has_model_file(const std::filesystem::path& file);

/// Reads a file. `what`: the role of the file in messages ("tokenizer"). Throws: TokenizerError with the cause.
std::string read_model_file(const std::filesystem::path& file, std::string_view what);

}  // namespace lancet
