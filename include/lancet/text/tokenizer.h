// Text to token ids and back, with the byte range of the text that each token covers.
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
  /// One per id. Tokens that cover no text (BOS, a dummy prefix of its own) have an empty span. A token made of a dummy
  /// prefix and text covers the text. Several tokens of one character (of its bytes) each cover the whole character.
  std::vector<ByteSpan> spans;
};

/// Whether the tokenizer's own special tokens (BOS, by its post-processor or configuration) are added.
enum class SpecialTokens { kAdd, kNone };

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Thread-safe. Throws: TokenizerError when `text` is not valid UTF-8 (byte position).
  virtual Encoding encode(std::string_view text, SpecialTokens special = SpecialTokens::kAdd) const = 0;
  /// Special tokens (BOS, EOS, UNK as the vocabulary flags them) are left out; invalid UTF-8 becomes U+FFFD. An id that
  /// is none of the tokenizer's (an embedding may be padded beyond it) has no text.
  /// Equal to Hugging Face's decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False).
  virtual std::string decode(std::span<const TokenId> ids) const = 0;
  /// The largest id and one more. A model may have more rows: nothing masks them, as in transformers.
  virtual int64_t vocab_size() const = 0;
  /// The vocabulary's own spelling, e.g. "▁Paris" or "ĠParis". Throws: TokenizerError when out of range.
  virtual std::string piece(TokenId id) const = 0;
  /// Id of a text's beginning, whether or not encode() puts it there.
  virtual std::optional<TokenId> bos_id() const = 0;
  virtual std::optional<TokenId> eos_id() const = 0;
  /// One line for `lancet inspect`: "BPE (byte level), tokenizer.json".
  virtual std::string description() const = 0;

  /// Whether encode() puts BOS before a text. GPT-2 has a BOS that it does not put there, Qwen has none.
  bool adds_bos() const {
    const std::optional<TokenId> bos = bos_id();
    const std::vector<TokenId> alone = ids("");
    return bos && !alone.empty() && alone.front() == *bos;
  }

  std::vector<TokenId> ids(std::string_view text, SpecialTokens special = SpecialTokens::kAdd) const {
    return encode(text, special).ids;
  }
};

/// The tokenizer of a model folder: tokenizer.json where there is one, else tokenizer.model, else vocab.json with
/// merges.txt. The latter two with what tokenizer_config.json says: add_bos_token and add_eos_token (absent: BOS for
/// tokenizer.model alone, EOS for neither), added tokens, the class. Throws: TokenizerError that names the file and
/// what in it is not supported (WordPiece, Unigram, a list of ranks, ...).
std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& folder);

/// One of them. By file, which alone decides but for the names of BOS and EOS:
std::unique_ptr<Tokenizer> open_bpe_tokenizer(const std::filesystem::path& tokenizer_json);
/// Opens by folder, because vocab.json and merges.txt leave most to tokenizer_config.json:
std::unique_ptr<Tokenizer> open_vocab_and_merges(const std::filesystem::path& folder);
struct SentencePieceOptions {
  bool add_bos = true;
  bool add_eos = false;
};
std::unique_ptr<Tokenizer> open_sentencepiece_tokenizer(const std::filesystem::path& tokenizer_model,
                                                        SentencePieceOptions options);

}  // namespace lancet
