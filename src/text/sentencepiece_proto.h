// Reads what libsentencepiece's own interface does not show: some settings of a model, and the positions of pieces in
// the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/text/tokenizer.h"

namespace lancet {

inline constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // "▁"

/// The settings of a model file that libsentencepiece does not show. The defaults are those of
/// sentencepiece_model.proto.
struct ModelSettings {
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool treat_whitespace_as_suffix = false;
  bool has_denormalizer = false;
  uint64_t model_type = 1;
};

ModelSettings parse_settings(std::string_view model);

/// Returns the model with add_dummy_prefix: false.
std::string without_dummy_prefix(std::string model);

/// Whether the file begins like "IQ== 0", the first line of a list of byte-level BPE ranks (tiktoken), which Llama 3
/// also calls tokenizer.model.
bool is_rank_list(std::string_view content);

struct AlignedPiece {
  TokenId id = 0;
  std::string_view text;
  ByteSpan span;
};

/// Reads a serialised SentencePieceText. Returns nothing if it does not belong to `text`: then encoding failed, and
/// this API says no more.
std::optional<std::vector<AlignedPiece>> parse_alignment(std::string_view message, std::string_view text);

/// If several pieces share a character (byte fallback, a ligature that normalisation splits), the library aligns only
/// the last of them with it. Here all of them are aligned with it. A dummy prefix that is a piece of its own keeps its
/// empty span.
void share_characters(std::vector<AlignedPiece>& pieces, bool has_dummy_prefix);

}  // namespace lancet
