// The model of a tokenizer.json: one word to the tokens it is made of.
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

/// A token of a word and the bytes of the word it stands for. The tokens of a character that fell back to bytes each
/// have the whole character.
struct WordToken {
  TokenId id = 0;
  size_t begin = 0;
  size_t end = 0;
};

class WordModel {
 public:
  virtual ~WordModel() = default;

  /// Appends the tokens of `word` (valid UTF-8, any length). Throws: TokenizerError for what the model has no token
  /// for.
  virtual void tokenize(std::string_view word, std::vector<WordToken>& out) const = 0;

  virtual std::optional<TokenId> id_of(std::string_view piece) const = 0;
  /// Calls `use` with each piece and its id.
  virtual void for_each_piece(const std::function<void(const std::string& piece, TokenId id)>& use) const = 0;
  /// "BPE".
  virtual std::string_view name() const = 0;
};

/// Throws: TokenizerError "where: ..." when parts of the model do not fit each other.
std::unique_ptr<WordModel> make_word_model(std::variant<BpeSpec, UnigramSpec> spec, const std::string& where);

/// "<0xE2>", the piece of a byte that no other piece spells.
std::string byte_piece(size_t byte);

// The tokens of words that came before: a text has few different ones. Thread-safe.

class WordCache {
 public:
  /// Appends the tokens of `word` to `out`, if they are known.
  bool find(std::string_view word, std::vector<WordToken>& out) const;
  /// Keeps them. Long words do not come again, so they are not kept; a full cache begins anew.
  void keep(std::string_view word, const std::vector<WordToken>& tokens);

 private:
  static constexpr size_t kMostWords = 1 << 16;
  static constexpr size_t kLongestWord = 64;  // bytes

  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::vector<WordToken>, StringHash, std::equal_to<>> words_;
};

}  // namespace lancet
