// The files and answers of libsentencepiece that its own interface does not show: settings of a model, and where in the
// text its pieces are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/text/tokenizer.h"

namespace lancet {

inline constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // "▁"

/// What the model file says that libsentencepiece gives no access to. Defaults of sentencepiece_model.proto.
struct ModelSettings {
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool treat_whitespace_as_suffix = false;
  bool has_denormalizer = false;
  uint64_t model_type = 1;
};

ModelSettings parse_settings(std::string_view model);

/// The model with add_dummy_prefix: false.
std::string without_dummy_prefix(std::string model);

/// "IQ== 0": the first line of a list of byte-level BPE ranks (tiktoken), which Llama 3 also calls tokenizer.model.
bool is_rank_list(std::string_view content);

struct AlignedPiece {
  TokenId id = 0;
  std::string_view text;
  ByteSpan span;
};

/// Reads a serialised SentencePieceText. Nothing when it is not that of `text`: encoding failed, and this API says no
/// more.
std::optional<std::vector<AlignedPiece>> parse_alignment(std::string_view message, std::string_view text);

/// The library aligns a character that several pieces share (byte fallback, a ligature that normalisation takes apart)
/// with the last of them only. All of them get it here. A dummy prefix of its own keeps its empty span.
void share_characters(std::vector<AlignedPiece>& pieces, bool has_dummy_prefix);

}  // namespace lancet
