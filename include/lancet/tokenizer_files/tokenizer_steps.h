// What the components of a tokenizer.json do, as data: steps of normalizers, pre-tokenizers and decoders.
// A component of the file may be several steps, BertNormalizer up to five.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "lancet/tokenizer_files/precompiled_map.h"
#include "lancet/tokenizer_files/split_pattern.h"
#include "lancet/tokenizer_files/text_pattern.h"

namespace lancet {

struct ReplaceStep {
  TextPattern pattern;
  std::string content;
};

/// The text is written in the characters that stand for its bytes (byte_alphabet.h in `text`).
struct SpellBytesStep {};

// Normalizers.

struct PrependStep {
  std::string text;
};

/// Unicode's normal forms.
enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

/// What happens to each character by itself.
enum class CharacterStep {
  kLowercase,
  kRemoveMarks,            ///< StripAccents: all marks (M)
  kRemoveNonSpacingMarks,  ///< BertNormalizer's: Mn alone
  kNmt,                    ///< control characters go, rare white space becomes a space
  kCleanText,              ///< BertNormalizer: control characters go, white space becomes a space
  kSpaceIdeographs,        ///< BertNormalizer: a space before and behind each Chinese character
};

/// White space goes.
struct TrimStep {
  bool left = true;
  bool right = true;
};

struct PrecompiledStep {
  std::shared_ptr<const PrecompiledMap> map;
};

using NormalizerStep =
    std::variant<PrependStep, ReplaceStep, NormalForm, CharacterStep, TrimStep, PrecompiledStep, SpellBytesStep>;

// Pre-tokenizers. Each acts on the words that the steps before it made.

/// A space is put before a word that does not begin with one (ByteLevel's add_prefix_space).
struct PrefixSpaceStep {};

enum class PrependScheme { kAlways, kFirst, kNever };

/// Spaces become the replacement, and one is put before the word. Where the words are cut there, a SplitPattern
/// follows.
struct MetaspaceStep {
  std::string replacement;  ///< one character
  PrependScheme prepend = PrependScheme::kAlways;
};

using PreTokenizerStep = std::variant<SplitPattern, PrefixSpaceStep, MetaspaceStep, SpellBytesStep>;

// Decoders. Each acts on the list of pieces that the steps before it left.

struct ByteFallbackStep {};
struct FuseStep {};
struct StripStep {
  std::string content;  ///< one character
  int64_t start = 0;
  int64_t stop = 0;
};
/// The pieces are read as spelled bytes, and joined.
struct ReadBytesStep {};
/// BPEDecoder: the mark of a word's end becomes a space, but not at the text's end.
struct WordEndStep {
  std::string suffix;
};
/// WordPiece: a space before each piece that does not continue a word.
struct WordPieceStep {
  std::string prefix;
  bool cleanup = false;  ///< without spaces before punctuation and contractions
};

using DecoderStep = std::variant<ReplaceStep, ByteFallbackStep, FuseStep, StripStep, MetaspaceStep, ReadBytesStep,
                                 WordEndStep, WordPieceStep>;

}  // namespace lancet
