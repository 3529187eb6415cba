// The table of replacements that SentencePiece compiles for a normalisation of its own (nmt_nfkc), as a tokenizer.json
// holds it: "precompiled_charsmap".
// Source: SentencePiece, normalizer.cc, and the tokenizers library, which both read it: a double array of the replaced
// texts (darts-clone), and what replaces them, each with a zero byte at its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lancet {

class PrecompiledMap {
 public:
  /// `charsmap` in base64. Throws: std::invalid_argument with what is wrong with it.
  explicit PrecompiledMap(std::string_view charsmap);

  /// What replaces `text`: that of the shortest replaced text with which it begins, as in the tokenizers library.
  /// Nothing where there is none, or where a damaged table leads out of itself.
  std::optional<std::string_view> replacement(std::string_view text) const;

 private:
  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace lancet
