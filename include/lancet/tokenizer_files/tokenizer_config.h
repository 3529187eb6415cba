// tokenizer_config.json, and the older special_tokens_map.json and added_tokens.json: what they say about special
// tokens and the tokenizer's class. Everything else in them (chat templates, lengths) is not the tokenizer's.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lancet/core/token_id.h"
#include "lancet/tokenizer_files/json_node.h"

namespace lancet {

// A token that is split out of the text before the model sees it.

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool single_word = false;  ///< not where a word goes on before or behind it
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space after it
  bool normalized = false;   ///< its normalised content is looked for in the normalised text
  bool special = false;      ///< left out by decode
};

/// Parses {"content", "lstrip", ...}; other keys are the caller's to judge. Fails where the content is empty.
AddedToken parse_added_token(const JsonNode& node, TokenId id);

struct TokenizerConfig {
  std::optional<std::string> tokenizer_class;
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<bool> add_prefix_space;
  std::optional<bool> legacy;
  std::vector<AddedToken> added_tokens;  ///< added_tokens_decoder, or added_tokens.json where there is none
  std::vector<AddedToken> named_tokens;  ///< BOS, EOS, UNK, PAD and so on, each once; without ids
};

/// Loads it from `folder`; nothing set where there are no such files. Throws: TokenizerError for a file that cannot be
/// understood.
TokenizerConfig load_tokenizer_config(const std::filesystem::path& folder);

// Finds the added tokens of a tokenizer in a text: leftmost first, and of those that begin there the longest.
// Source: Hugging Face tokenizers, tokenizer/added_vocabulary.rs.

/// A stretch of the text: an added token, or (null) text between two.
struct TextPart {
  const AddedToken* token = nullptr;
  size_t begin = 0;
  size_t end = 0;
};

class AddedTokenFinder {
 public:
  /// Looks for `pattern` and reports `token`, which outlives the finder. Of equal patterns the first counts.
  void add(std::string_view pattern, const AddedToken& token);

  /// The parts in order; together they are the text, except that white space a token takes may lie in two.
  std::vector<TextPart> split(std::string_view text) const;

 private:
  struct Match {
    const AddedToken* token = nullptr;
    size_t end = 0;
  };
  Match longest_at(std::string_view text, size_t at) const;

  /// A tree of the patterns' bytes, whose root is node 0.
  std::unordered_map<uint64_t, uint32_t> next_;          // by node << 8 | byte
  std::vector<const AddedToken*> token_at_ = {nullptr};  // by node: of the pattern that ends there; null: none does
  std::array<bool, 256> begins_ = {};                    // bytes that patterns begin with
};

}  // namespace lancet
