// Byte-pair merging of one word over a vocabulary with ranked merges.
// Source: Hugging Face tokenizers, models/bpe (merge_word, Word::merge_all), whose ids these are.
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
  /// Throws: TokenizerError "where: ..." when a merge or the unknown token is not in the vocabulary.
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
  struct Symbol;     // a live or merged-away token of the word, in a linked list
  struct Candidate;  // a merge that may be applied at a symbol
  class Merging;

  std::vector<WordToken> characters(std::string_view word) const;
  /// The character [at, end) of `word` as the vocabulary spells it, with the marks of a word's inside and end.
  std::string spelling(std::string_view word, size_t at, size_t end) const;
  bool append_bytes(std::string_view spelling, TextPiece character, std::vector<WordToken>& out) const;
  const Merge* find_merge(TokenId left, TokenId right) const;

  BpeSpec spec_;
  std::unordered_map<uint64_t, Merge> merges_;
  std::optional<TokenId> unk_;
  std::array<std::optional<TokenId>, 256> byte_tokens_{};
};

}  // namespace lancet
