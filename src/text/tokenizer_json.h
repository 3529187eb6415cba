// tokenizer.json (Hugging Face tokenizers, version 1.0) as a plain struct, for BPE of the SentencePiece kind and of the
// byte level. Strict: a component, key or value that is not understood is an error that names it, because each of them
// changes ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "bpe/split_pattern.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

/// Lets a map of strings be searched with a string_view.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};
using Vocabulary = std::unordered_map<std::string, TokenId, StringHash, std::equal_to<>>;

/// A token that is split out of the text before the model sees it.
struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool lstrip = false;      ///< takes the white space before it
  bool rstrip = false;      ///< takes the white space after it
  bool normalized = false;  ///< its normalised content is looked for in the normalised text
  bool special = false;     ///< left out by decode
};

struct PrependStep {
  std::string text;
};
struct ReplaceStep {
  std::string pattern;
  std::string content;
};
using NormalizerStep = std::variant<PrependStep, ReplaceStep>;

enum class PrependScheme { kAlways, kFirst, kNever };
struct Metaspace {
  std::string replacement;  ///< one character
  PrependScheme prepend = PrependScheme::kAlways;
  bool split = true;  ///< cut before each replacement
};

/// The model sees a character for each byte (byte_alphabet.h).
struct ByteLevel {
  std::vector<SplitPattern> patterns;  ///< cut the words, each within those of the one before
  bool add_prefix_space = false;       ///< before a text that does not begin with one
};

struct ByteFallbackStep {};
struct FuseStep {};
struct StripStep {
  std::string content;  ///< one character
  int64_t start = 0;
  int64_t stop = 0;
};
struct ByteLevelStep {};
using DecoderStep = std::variant<ReplaceStep, ByteFallbackStep, FuseStep, StripStep, Metaspace, ByteLevelStep>;

struct BpeSpec {
  Vocabulary vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  ///< by rank
  std::optional<std::string> unk_token;
  bool byte_fallback = false;
  bool fuse_unk = false;
  bool ignore_merges = false;  ///< a word that is in the vocabulary is taken whole
};

struct TokenizerJson {
  std::vector<AddedToken> added_tokens;
  std::vector<NormalizerStep> normalizer;
  std::variant<std::monostate, Metaspace, ByteLevel> pre_tokenizer;
  BpeSpec model;
  std::vector<TokenId> prefix;  ///< special tokens before the text
  std::vector<TokenId> suffix;  ///< and after it
  std::optional<std::vector<DecoderStep>> decoder;
};

/// Throws: TokenizerError that names the file, the place and what is supported there.
TokenizerJson load_tokenizer_json(const std::filesystem::path& file);

}  // namespace lancet
