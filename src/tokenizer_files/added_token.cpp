#include "lancet/tokenizer_files/added_token.h"

#include "lancet/core/strings.h"

namespace lancet {

AddedToken parse_added_token(const JsonNode& node, TokenId id) {
  AddedToken token;
  token.id = id;
  token.content = node.at("content").text();
  if (token.content.empty()) node.at("content").fail("an empty token");
  if (node.find_boolean("single_word").value_or(false)) {
    node.at("single_word").fail(cat("true (token \"", token.content, "\") is not supported"));
  }
  token.lstrip = node.find_boolean("lstrip").value_or(false);
  token.rstrip = node.find_boolean("rstrip").value_or(false);
  token.special = node.find_boolean("special").value_or(false);
  token.normalized = node.find_boolean("normalized").value_or(!token.special);  // Hugging Face's default
  return token;
}

}  // namespace lancet
