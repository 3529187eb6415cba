// Strict reading of a JSON document: every mistake names the file and the place in it, and a key that is not known is a
// mistake.
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

// UTF-8 as the tokenizers need it: strict validity, white space, and bytes that may not be text.

/// Throws: TokenizerError with the byte position.
void require_utf8(std::string_view text);

/// Length of the character that begins with `lead`, in text that is known to be valid.
size_t utf8_bytes(char lead);

/// Unicode's White_Space property.
bool is_white_space(char32_t code_point);

/// Valid characters as they are, U+FFFD for each byte that is not part of one.
std::string replace_invalid_utf8(std::string_view bytes);

/// Replaces likewise, but writes one U+FFFD for all bytes with which a character begins and breaks off (Unicode,
/// "maximal subpart").
std::string replace_broken_utf8(std::string_view bytes);

// Files of a model's tokenizer.

/// False only where nothing of that name is: reading it tells what is wrong with it.
bool has_model_file(const std::filesystem::path& file);

/// `what` names the role ("tokenizer"). Throws: TokenizerError with the cause.
std::string read_model_file(const std::filesystem::path& file, std::string_view what);

}  // namespace lancet
