// Finds the added tokens of a tokenizer in a text: leftmost first, and of those that begin there the longest.
// Source: Hugging Face tokenizers, tokenizer/added_vocabulary.rs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lancet/tokenizer_files/added_token.h"

namespace lancet {

/// A stretch of the text: an added token, or (null) text between two.
struct TextPart {
  const AddedToken* token = nullptr;
  size_t begin = 0;
  size_t end = 0;
};

class AddedTokenFinder {
 public:
  /// Looks for `pattern` and reports `token`, which outlives the finder. Of equal patterns the first counts.
  void add(std::string_view pattern, const AddedToken& token);

  /// The parts in order; together they are the text, except that white space a token takes may lie in two.
  std::vector<TextPart> split(std::string_view text) const;

 private:
  struct Match {
    const AddedToken* token = nullptr;
    size_t end = 0;
  };
  Match longest_at(std::string_view text, size_t at) const;

  /// A tree of the patterns' bytes, whose root is node 0.
  std::unordered_map<uint64_t, uint32_t> next_;          // by node << 8 | byte
  std::vector<const AddedToken*> token_at_ = {nullptr};  // by node: of the pattern that ends there; null: none does
  std::array<bool, 256> begins_ = {};                    // bytes that patterns begin with
};

}  // namespace lancet
