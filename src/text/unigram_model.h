// Finds the most probable pieces of one word with Viterbi's algorithm over pieces with log-probabilities. Source:
// Hugging Face tokenizers, models/unigram (encode_optimized, tokenize). The ids are the same. The algorithm is
// SentencePiece's (arXiv 1808.06226).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "word_model.h"

namespace lancet {

class UnigramModel final : public WordModel {
 public:
  UnigramModel(UnigramSpec spec, std::string where);

  /// O(n L log V), where L is the length of the longest piece.
  void tokenize(std::string_view word, std::vector<WordToken>& out) const override;

  std::optional<TokenId> id_of(std::string_view piece) const override;
  void for_each_piece(const std::function<void(const std::string& piece, TokenId id)>& use) const override;
  std::string_view name() const override { return "Unigram"; }

 private:
  struct Step;  // a step of the best path to a position in the word

  const std::string& text_of(TokenId id) const { return spec_.pieces[static_cast<size_t>(id)].first; }
  double score_of(TokenId id) const { return spec_.pieces[static_cast<size_t>(id)].second; }
  std::vector<Step> best_path(std::string_view word) const;
  void extend(std::string_view word, size_t begin, std::vector<Step>& best) const;
  void append_stretch(std::string_view word, TextPiece stretch, std::vector<WordToken>& out) const;

  UnigramSpec spec_;
  std::string where_;
  std::vector<TokenId> sorted_;  ///< sorted by the piece's bytes; of equal pieces the last one
  double unk_score_ = 0;
  std::array<std::optional<TokenId>, 256> byte_tokens_{};
};

}  // namespace lancet
