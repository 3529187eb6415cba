// A token that is split out of the text before the model sees it.
#pragma once

#include <string>

#include "lancet/core/token_id.h"
#include "lancet/tokenizer_files/json_node.h"

namespace lancet {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool lstrip = false;      ///< takes the white space before it
  bool rstrip = false;      ///< takes the white space after it
  bool normalized = false;  ///< its normalised content is looked for in the normalised text
  bool special = false;     ///< left out by decode
};

/// Parses {"content", "lstrip", ...}; other keys are the caller's to judge. Fails where the content is empty, and for
/// single_word: true.
AddedToken parse_added_token(const JsonNode& node, TokenId id);

}  // namespace lancet
