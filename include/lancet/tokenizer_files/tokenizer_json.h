// tokenizer.json (Hugging Face tokenizers, version 1.0) as a plain struct. Strict: a component, key or value that is
// not understood is an error that names it, because each of them changes ids.
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

// Pieces and their ids, and the merges between them, as a tokenizer.json and a vocab.json spell them.

/// Lets a map of strings be searched with a string_view.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};
using Vocabulary = std::unordered_map<std::string, TokenId, StringHash, std::equal_to<>>;

/// Parses {"piece": id, ...}. Fails for an id that is not in 0 to 2^31 - 1 or that two pieces have.
Vocabulary parse_vocabulary(const JsonNode& node);

/// Parses "left right"; nothing when these are not two pieces with one space between them.
std::optional<std::pair<std::string, std::string>> parse_merge_line(std::string_view line);

/// The first line of a merges.txt, which some wrote into a tokenizer.json too.
bool is_merges_version(std::string_view line);

struct BpeSpec {
  Vocabulary vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  ///< pairs in the order of their ranks
  std::optional<std::string> unk_token;
  std::string continuing_subword_prefix;  ///< stands before each character of a word but the first
  std::string end_of_word_suffix;         ///< stands behind a word's last character
  bool byte_fallback = false;
  bool fuse_unk = false;
  bool ignore_merges = false;  ///< a word that is in the vocabulary is taken whole
};

struct UnigramSpec {
  std::vector<std::pair<std::string, double>> pieces;  ///< by id, with their logarithms of probabilities
  std::optional<TokenId> unk;
  bool byte_fallback = false;
};

/// A tokenizer as data, whichever files it is from.
struct TokenizerJson {
  std::vector<AddedToken> added_tokens;
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
  std::variant<BpeSpec, UnigramSpec> model;
  std::vector<TokenId> prefix;           ///< special tokens before the text
  std::vector<TokenId> suffix;           ///< and after it
  std::optional<std::string> bos_token;  ///< token where tokenizer_config.json names none
  std::optional<std::string> eos_token;  ///< likewise
  std::optional<std::vector<DecoderStep>> decoder;
};

/// Throws: TokenizerError that names the file, the place and what is supported there.
TokenizerJson load_tokenizer_json(const std::filesystem::path& file);

}  // namespace lancet
