// tokenizer.json (Hugging Face tokenizers, version 1.0) as a plain struct. Reading is strict: a component, key or value
// that is not understood is an error that names it, because each of them changes ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "lancet/core/token_id.h"
#include "lancet/tokenizer_files/json_node.h"
#include "lancet/tokenizer_files/tokenizer_config.h"
#include "lancet/tokenizer_files/tokenizer_steps.h"

namespace lancet {

// Pieces with their ids, and the merges between them, in the format of a tokenizer.json and a vocab.json.

/// Allows lookups with a string_view in a map of strings.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};
using Vocabulary = std::unordered_map<std::string, TokenId, StringHash, std::equal_to<>>;

/// Parses {"piece": id, ...}. Fails for an id that is not between 0 and 2^31 - 1, or that two pieces share.
Vocabulary parse_vocabulary(const JsonNode& node);

/// Parses "left right"; nullopt when the line is not two pieces with one space between them.
std::optional<std::pair<std::string, std::string>> parse_merge_line(std::string_view line);

/// Whether the line is the version line at the start of a merges.txt, which some tokenizer.json files contain too.
bool is_merges_version(std::string_view line);

struct BpeSpec {
  Vocabulary vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  ///< pairs in the order of their ranks
  std::optional<std::string> unk_token;
  std::string continuing_subword_prefix;  ///< prefix of each character of a word except the first
  std::string end_of_word_suffix;         ///< suffix of a word's last character
  bool byte_fallback = false;
  bool fuse_unk = false;
  bool ignore_merges = false;  ///< a word that is in the vocabulary becomes one token
};

struct UnigramSpec {
  std::vector<std::pair<std::string, double>> pieces;  ///< by id, with the logarithms of their probabilities
  std::optional<TokenId> unk;
  bool byte_fallback = false;
};

/// A tokenizer as data, independent of the files that it comes from.
struct TokenizerJson {
  std::vector<AddedToken> added_tokens;
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
  std::variant<BpeSpec, UnigramSpec> model;
  std::vector<TokenId> prefix;           ///< special tokens before the text
  std::vector<TokenId> suffix;           ///< special tokens after the text
  std::optional<std::string> bos_token;  ///< BOS if tokenizer_config.json names none
  std::optional<std::string> eos_token;  ///< EOS if tokenizer_config.json names none
  std::optional<std::vector<DecoderStep>> decoder;
};

/// Reads the file. Throws: TokenizerError that names the file, the place and what is supported there.
TokenizerJson load_tokenizer_json(const std::filesystem::path& file);

}  // namespace lancet
