#include "chat_program.h"

#include <cstdlib>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/text/chat_template_text.h"
#include "lancet/tokenizer_files/json_node.h"
#include "lancet/tokenizer_files/tokenizer_config.h"

namespace lancet {
namespace {

void add_token(const JsonNode& value, const std::string& role, JinjaDataMap& tokens) {
  for (const auto& [known, token] : tokens)
    if (known == role) return;
  const bool is_token = value.is_object();  // the form in which transformers writes an AddedToken
  if (is_token && !value.has("content")) return;
  tokens.emplace_back(role, JinjaData{is_token ? value.at("content").text() : value.text()});
}

/// Adds the tokens by role, and those that a model names itself (image_token), if `extra_special_tokens` is an object.
void add_tokens(const JsonNode& root, JinjaDataMap& tokens) {
  for (const char* role : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"})
    if (root.has(role)) add_token(root.at(role), role, tokens);
  if (!root.has("extra_special_tokens") || !root.at("extra_special_tokens").is_object()) return;
  const JsonNode extra = root.at("extra_special_tokens");
  for (const auto& [role, value] : extra.value().items())
    if (value.is_string() || value.is_object()) add_token(extra.at(role), role, tokens);
}

}  // namespace

std::optional<ChatTemplateText> find_chat_source(const std::filesystem::path& folder) {
  const std::filesystem::path own = folder / "chat_template.jinja", config = folder / "tokenizer_config.json";
  if (has_model_file(own)) return ChatTemplateText{read_model_file(own, "chat template"), own};
  if (!has_model_file(config)) return std::nullopt;
  const nlohmann::json document = load_json(config);
  const JsonNode root(document, config);
  if (!root.has("chat_template")) return std::nullopt;
  const JsonNode value = root.at("chat_template");
  if (!value.is_list()) return ChatTemplateText{value.text(), config};
  for (const JsonNode& item : value.items())
    if (item.at("name").text() == "default") return ChatTemplateText{item.at("template").text(), config};
  value.fail("expected one that is named \"default\"");
}

std::optional<std::string> chat_template_text(const std::filesystem::path& folder) {
  const std::optional<ChatTemplateText> found = find_chat_source(folder);
  return found ? std::optional(found->jinja) : std::nullopt;
}

JinjaDataMap chat_tokens(const std::filesystem::path& folder) {
  JinjaDataMap tokens;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::filesystem::path file = folder / name;
    if (!has_model_file(file)) continue;
    const nlohmann::json document = load_json(file);
    add_tokens(JsonNode(document, file), tokens);
  }
  return tokens;
}

std::tm chat_time() {
  std::tm parts{};
  if (const char* fixed = std::getenv("SOURCE_DATE_EPOCH"); fixed != nullptr && *fixed != '\0') {
    const std::optional<int64_t> seconds = parse_whole_number(fixed);
    constexpr int64_t kYear9999 = 253'402'300'799;
    if (!seconds || *seconds < 0 || *seconds > kYear9999)
      throw ConfigError(cat("SOURCE_DATE_EPOCH: expected seconds since 1970, got '", excerpt(fixed, 40), "'"));
    const auto time = static_cast<std::time_t>(*seconds);
    gmtime_r(&time, &parts);
    return parts;
  }
  const std::time_t now = std::time(nullptr);
  localtime_r(&now, &parts);
  return parts;
}

}  // namespace lancet
