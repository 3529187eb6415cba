// The table of replacements that SentencePiece compiles for its own normalisation (nmt_nfkc), as in a tokenizer.json:
// "precompiled_charsmap". Source: SentencePiece, normalizer.cc, and the tokenizers library, which both read it. It
// consists of a double array of the replaced texts (darts-clone), and of the replacements, each with a zero byte at its
// end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lancet {

class PrecompiledMap {
 public:
  /// Reads `charsmap`, in base64. Throws: std::invalid_argument with the error in it.
  explicit PrecompiledMap(std::string_view charsmap);

  /// Returns the replacement for the beginning of `text`. As in the tokenizers library, the shortest replaced text with
  /// which `text` begins counts. nullopt if there is none, or if a damaged table points outside itself.
  std::optional<std::string_view> replacement(std::string_view text) const;

 private:
  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace lancet
