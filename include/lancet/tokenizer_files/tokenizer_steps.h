// The components of a tokenizer.json as data: the steps of normalizers, pre-tokenizers and decoders.
// A component of the file may become several steps; BertNormalizer becomes up to five.
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

/// Replaces each byte of the text by the character that stands for it (byte_alphabet.h in `text`).
struct SpellBytesStep {};

// Normalizers.

struct PrependStep {
  std::string text;
};

/// Unicode's normal forms.
enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

/// A step that changes each character independently.
enum class CharacterStep {
  kLowercase,
  kRemoveMarks,            ///< StripAccents: removes all marks (M)
  kRemoveNonSpacingMarks,  ///< BertNormalizer: removes marks of Mn only
  kNmt,                    ///< removes control characters; rare white space becomes a space
  kCleanText,              ///< BertNormalizer: removes control characters; white space becomes a space
  kSpaceIdeographs,        ///< BertNormalizer: adds a space before and after each Chinese character
};

/// Removes white space at the ends.
struct TrimStep {
  bool left = true;
  bool right = true;
};

struct PrecompiledStep {
  std::shared_ptr<const PrecompiledMap> map;
};

using NormalizerStep =
    std::variant<PrependStep, ReplaceStep, NormalForm, CharacterStep, TrimStep, PrecompiledStep, SpellBytesStep>;

// Pre-tokenizers. Each works on the words that the previous steps made.

/// Adds a space before a word that does not begin with one (ByteLevel's add_prefix_space).
struct PrefixSpaceStep {};

enum class PrependScheme { kAlways, kFirst, kNever };

/// Replaces spaces, and adds a replacement before the word. If the words are cut there, a SplitPattern follows.
struct MetaspaceStep {
  std::string replacement;  ///< one character
  PrependScheme prepend = PrependScheme::kAlways;
};

using PreTokenizerStep = std::variant<SplitPattern, PrefixSpaceStep, MetaspaceStep, SpellBytesStep>;

// Decoders. Each works on the list of pieces from the previous steps.

struct ByteFallbackStep {};
struct FuseStep {};
struct StripStep {
  std::string content;  ///< one character
  int64_t start = 0;
  int64_t stop = 0;
};
/// Converts the pieces from spelled bytes to bytes, and joins them.
struct ReadBytesStep {};
/// BPEDecoder: replaces the mark at a word's end by a space, except at the end of the text.
struct WordEndStep {
  std::string suffix;
};
/// WordPiece: adds a space before each piece that does not continue a word.
struct WordPieceStep {
  std::string prefix;
  bool cleanup = false;  ///< removes spaces before punctuation and contractions
};

using DecoderStep = std::variant<ReplaceStep, ByteFallbackStep, FuseStep, StripStep, MetaspaceStep, ReadBytesStep,
                                 WordEndStep, WordPieceStep>;

}  // namespace lancet
