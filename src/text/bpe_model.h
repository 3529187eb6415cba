// Byte-pair merging of one word, with a vocabulary and ranked merges. Source: Hugging Face tokenizers, models/bpe
// (merge_word, Word::merge_all). The ids are the same.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "word_model.h"

namespace lancet {

class BpeModel final : public WordModel {
 public:
  /// Throws: TokenizerError "where: ..." if a merge or the unknown token is not in the vocabulary.
  BpeModel(BpeSpec spec, const std::string& where);

  /// O(n log n).
  void tokenize(std::string_view word, std::vector<WordToken>& out) const override;

  std::optional<TokenId> id_of(std::string_view piece) const override;
  void for_each_piece(const std::function<void(const std::string& piece, TokenId id)>& use) const override;
  std::string_view name() const override { return "BPE"; }

 private:
  struct Merge {
    int64_t rank = 0;
    TokenId merged = 0;
  };
  struct Symbol;     // a token of the word in a linked list, possibly already merged into another one
  struct Candidate;  // a merge that can be applied at a symbol
  class Merging;

  std::vector<WordToken> characters(std::string_view word) const;
  /// Returns the character [at, end) of `word` in the vocabulary's spelling, with the marks for the inside and the end
  /// of a word.
  std::string spelling(std::string_view word, size_t at, size_t end) const;
  bool append_bytes(std::string_view spelling, TextPiece character, std::vector<WordToken>& out) const;
  const Merge* find_merge(TokenId left, TokenId right) const;

  BpeSpec spec_;
  std::unordered_map<uint64_t, Merge> merges_;
  std::optional<TokenId> unk_;
  std::array<std::optional<TokenId>, 256> byte_tokens_{};
};

}  // namespace lancet
