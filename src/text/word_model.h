// The model of a tokenizer.json, which splits one word into tokens.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "lancet/tokenizer_files/tokenizer_json.h"

namespace lancet {

/// A token of a word, and the bytes of the word to which it belongs. If a character fell back to bytes, each of its
/// tokens has the whole character.
struct WordToken {
  TokenId id = 0;
  size_t begin = 0;
  size_t end = 0;
};

class WordModel {
 public:
  virtual ~WordModel() = default;

  /// Appends the tokens of `word` (valid UTF-8, any length). Throws: TokenizerError if the model has no token for a
  /// part of it.
  virtual void tokenize(std::string_view word, std::vector<WordToken>& out) const = 0;

  virtual std::optional<TokenId> id_of(std::string_view piece) const = 0;
  /// Calls `use` for each piece and its id.
  virtual void for_each_piece(const std::function<void(const std::string& piece, TokenId id)>& use) const = 0;
  /// Returns "BPE".
  virtual std::string_view name() const = 0;
};

/// Throws: TokenizerError "where: ..." if parts of the model do not fit each other.
std::unique_ptr<WordModel> make_word_model(std::variant<BpeSpec, UnigramSpec> spec, const std::string& where);

/// Returns "<0xE2>", the piece of a byte for which there is no other piece.
std::string byte_piece(size_t byte);

// A cache with the tokens of earlier words, because a text has few different words. Thread-safe.

class WordCache {
 public:
  /// Appends the tokens of `word` to `out` if the cache has them.
  bool find(std::string_view word, std::vector<WordToken>& out) const;
  /// Stores the tokens. Long words do not occur again, so they are not stored. A full cache is emptied.
  void keep(std::string_view word, const std::vector<WordToken>& tokens);

 private:
  static constexpr size_t kMostWords = 1 << 16;
  static constexpr size_t kLongestWord = 64;  // in bytes

  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::vector<WordToken>, StringHash, std::equal_to<>> words_;
};

}  // namespace lancet
