// tokenizer_config.json and the older special_tokens_map.json and added_tokens.json: what they say about special tokens
// and the tokenizer's class. Their other content (chat templates, lengths) does not concern the tokenizer.
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

// A token that is split out of the text before the model processes it.

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool single_word = false;  ///< matches only if no word continues before or after it
  bool lstrip = false;       ///< includes the white space before it
  bool rstrip = false;       ///< includes the white space after it
  bool normalized = false;   ///< its normalised content is searched in the normalised text
  bool special = false;      ///< omitted by decode
};

/// Parses {"content", "lstrip", ...}; the caller decides about other keys. Fails if the content is empty.
AddedToken parse_added_token(const JsonNode& node, TokenId id);

struct TokenizerConfig {
  std::optional<std::string> tokenizer_class;
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<bool> add_prefix_space;
  std::optional<bool> legacy;
  std::vector<AddedToken> added_tokens;  ///< from added_tokens_decoder, or from added_tokens.json if there is none
  std::vector<AddedToken> named_tokens;  ///< BOS, EOS, UNK, PAD and so on, each once; without ids
};

/// Loads the configuration from `folder`; nothing is set if there are no such files. Throws: TokenizerError for a file
/// that cannot be understood.
TokenizerConfig load_tokenizer_config(const std::filesystem::path& folder);

// Finds the added tokens of a tokenizer in a text: the leftmost first, and among those that begin at the same place the
// longest. Source: Hugging Face tokenizers, tokenizer/added_vocabulary.rs.

/// A part of the text: an added token, or (null) the text between two of them.
struct TextPart {
  const AddedToken* token = nullptr;
  size_t begin = 0;
  size_t end = 0;
};

class AddedTokenFinder {
 public:
  /// Makes the finder report `token` for `pattern`. `token` must outlive the finder. Among equal patterns the first
  /// counts.
  void add(std::string_view pattern, const AddedToken& token);

  /// Returns the parts in order. Together they are the text, except that white space that a token includes may be in
  /// two parts.
  std::vector<TextPart> split(std::string_view text) const;

 private:
  struct Match {
    const AddedToken* token = nullptr;
    size_t end = 0;
  };
  Match longest_at(std::string_view text, size_t at) const;

  /// A trie of the patterns' bytes, with root node 0.
  std::unordered_map<uint64_t, uint32_t> next_;          // by node << 8 | byte
  std::vector<const AddedToken*> token_at_ = {nullptr};  // by node: the token whose pattern ends there; null: none
  std::array<bool, 256> begins_ = {};                    // bytes that patterns begin with
};

}  // namespace lancet
