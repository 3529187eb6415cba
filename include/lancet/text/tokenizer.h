// Converts text to token ids and back, with the byte range of the text that each token covers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/token_id.h"

namespace lancet {

/// Half-open range of UTF-8 bytes in the text that was encoded.
struct ByteSpan {
  int64_t begin = 0;
  int64_t end = 0;
  bool intersects(ByteSpan other) const { return begin < other.end && other.begin < end; }
  bool operator==(const ByteSpan&) const = default;
};

struct Encoding {
  std::vector<TokenId> ids;
  /// One span per id. Tokens that cover no text (BOS, a separate dummy prefix) have an empty span. A token of a dummy
  /// prefix and text covers the text. If one character is split into several tokens (of its bytes), each covers the
  /// whole character.
  std::vector<ByteSpan> spans;
};

/// Whether to add the tokenizer's own special tokens (BOS, as its post-processor or configuration says).
enum class SpecialTokens { kAdd, kNone };

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Encodes the text. Thread-safe. Throws: TokenizerError when `text` is not valid UTF-8 (with the byte position).
  virtual Encoding encode(std::string_view text, SpecialTokens special = SpecialTokens::kAdd) const = 0;
  /// Decodes the ids. Special tokens (BOS, EOS, UNK as the vocabulary marks them) are omitted; invalid UTF-8 becomes
  /// U+FFFD. An id that the tokenizer does not have (an embedding may be padded) gives no text. Equal to Hugging Face's
  /// decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False).
  virtual std::string decode(std::span<const TokenId> ids) const = 0;
  /// Returns the largest id plus one. A model may have more rows; as in transformers, nothing masks them.
  virtual int64_t vocab_size() const = 0;
  /// Returns the vocabulary's own spelling, e.g. "▁Paris" or "ĠParis". Throws: TokenizerError when the id is out of
  /// range.
  virtual std::string piece(TokenId id) const = 0;
  /// Returns the id that marks the beginning of a text, whether or not encode() adds it.
  virtual std::optional<TokenId> bos_id() const = 0;
  virtual std::optional<TokenId> eos_id() const = 0;
  /// Returns one line for `lancet inspect`: "BPE (byte level), tokenizer.json".
  virtual std::string description() const = 0;

  /// Whether encode() adds BOS before a text. GPT-2 has a BOS but does not add it; Qwen has none.
  bool adds_bos() const {
    const std::optional<TokenId> bos = bos_id();
    const std::vector<TokenId> alone = ids("");
    return bos && !alone.empty() && alone.front() == *bos;
  }

  std::vector<TokenId> ids(std::string_view text, SpecialTokens special = SpecialTokens::kAdd) const {
    return encode(text, special).ids;
  }
};

/// Opens the tokenizer of a model folder: tokenizer.json if there is one, else tokenizer.model, else vocab.json with
/// merges.txt. The latter two also follow tokenizer_config.json: add_bos_token and add_eos_token (if absent: BOS only
/// for tokenizer.model, EOS for neither), added tokens, and the class. Throws: TokenizerError that names the file and
/// what in it is not supported (WordPiece, WordLevel, a list of ranks, ...).
std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& folder);

/// Opens a tokenizer.json. The file alone determines everything except the names of BOS and EOS.
std::unique_ptr<Tokenizer> open_bpe_tokenizer(const std::filesystem::path& tokenizer_json);
/// Opens vocab.json and merges.txt of a folder; tokenizer_config.json beside them determines most of the rest.
std::unique_ptr<Tokenizer> open_vocab_and_merges(const std::filesystem::path& folder);
struct SentencePieceOptions {
  bool add_bos = true;
  bool add_eos = false;
};
std::unique_ptr<Tokenizer> open_sentencepiece_tokenizer(const std::filesystem::path& tokenizer_model,
                                                        SentencePieceOptions options);

}  // namespace lancet
