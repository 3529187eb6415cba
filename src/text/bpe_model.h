// Byte-pair merging of one word over a vocabulary with ranked merges.
// Source: Hugging Face tokenizers, models/bpe (merge_word, Word::merge_all), whose ids these are.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
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

class BpeModel {
 public:
  /// Throws: TokenizerError "where: ..." when a merge or the unknown token is not in the vocabulary.
  BpeModel(BpeSpec spec, const std::string& where);

  /// Appends the tokens of `word` (valid UTF-8, any length: O(n log n)).
  void tokenize(std::string_view word, std::vector<WordToken>& out) const;

  std::optional<TokenId> id_of(std::string_view piece) const;
  const Vocabulary& vocabulary() const { return spec_.vocabulary; }

 private:
  struct Merge {
    int64_t rank = 0;
    TokenId merged = 0;
  };
  struct Symbol;     // a live or merged-away token of the word, in a linked list
  struct Candidate;  // a merge that may be applied at a symbol
  class Merging;

  std::vector<WordToken> characters(std::string_view word) const;
  bool append_bytes(std::string_view character, size_t begin, std::vector<WordToken>& out) const;
  const Merge* find_merge(TokenId left, TokenId right) const;

  BpeSpec spec_;
  std::unordered_map<uint64_t, Merge> merges_;
  std::optional<TokenId> unk_;
  std::array<std::optional<TokenId>, 256> byte_tokens_{};
};

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
