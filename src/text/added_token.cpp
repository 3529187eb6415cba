#include "added_token.h"

#include "lancet/core/strings.h"

namespace lancet {

AddedToken parse_added_token(const JsonNode& node, TokenId id) {
  AddedToken token;
  token.id = id;
  token.content = node.at("content").text();
  if (token.content.empty()) node.at("content").fail("an empty token");
  if (node.boolean_or("single_word", false)) {
    node.at("single_word").fail(cat("true (token \"", token.content, "\") is not supported"));
  }
  token.lstrip = node.boolean_or("lstrip", false);
  token.rstrip = node.boolean_or("rstrip", false);
  token.special = node.boolean_or("special", false);
  token.normalized = node.boolean_or("normalized", !token.special);  // Hugging Face's default
  return token;
}

}  // namespace lancet
