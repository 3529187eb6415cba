#include "tokenizer_config.h"

#include <optional>

#include "json_node.h"
#include "lancet/core/strings.h"
#include "model_file.h"

namespace lancet {
namespace {

/// A name is a string, or an object with "content" (how transformers writes an AddedToken).
std::optional<std::string> token_name(const JsonNode& root, std::string_view key) {
  if (!root.has(key)) return std::nullopt;
  const JsonNode value = root.at(key);
  return value.is_object() ? value.at("content").text() : value.text();
}

std::optional<bool> flag(const JsonNode& root, std::string_view key) {
  if (!root.has(key)) return std::nullopt;
  return root.at(key).boolean();
}

}  // namespace

TokenizerConfig load_tokenizer_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "tokenizer_config.json";
  if (!has_model_file(file)) return {};
  const nlohmann::json document = load_json(file);
  const JsonNode root(document, file);
  TokenizerConfig config;
  config.bos_token = token_name(root, "bos_token");
  config.eos_token = token_name(root, "eos_token");
  config.add_bos_token = flag(root, "add_bos_token");
  config.add_eos_token = flag(root, "add_eos_token");
  if (!root.has("added_tokens_decoder")) return config;
  const JsonNode added = root.at("added_tokens_decoder");
  if (!added.is_object()) added.fail("expected an object");
  for (const auto& [key, value] : added.value().items()) {
    const std::optional<int64_t> id = parse_whole_number(key);
    if (!id || *id < 0) added.fail("expected token ids as keys");
    config.added_tokens.emplace_back(*id, added.at(key).at("content").text());
  }
  return config;
}

}  // namespace lancet
