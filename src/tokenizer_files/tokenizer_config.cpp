#include "lancet/tokenizer_files/tokenizer_config.h"

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "characters.h"
#include "lancet/core/strings.h"
#include "lancet/tokenizer_files/json_node.h"

namespace lancet {
namespace {

std::optional<bool> flag(const JsonNode& root, std::string_view key) {
  if (!root.has(key)) return std::nullopt;
  return root.at(key).boolean();
}

/// Reads a name: a string, or an object with "content" (the form in which transformers writes an AddedToken).
AddedToken named_token(const JsonNode& node) {
  AddedToken token;
  if (node.is_object()) {
    token = parse_added_token(node, 0);
  } else {
    token.content = node.text();
  }
  token.special = true;
  return token;
}

using Contents = std::unordered_set<std::string>;

Contents contents_of(const std::vector<AddedToken>& tokens) {
  Contents contents;
  for (const AddedToken& token : tokens) contents.insert(token.content);
  return contents;
}

void add_name(const JsonNode& node, Contents& known, std::vector<AddedToken>& out) {
  AddedToken token = named_token(node);
  if (known.insert(token.content).second) out.push_back(std::move(token));
}

/// Reads special tokens by their roles. transformers reads the same keys of both files.
void read_names(const JsonNode& root, TokenizerConfig& config) {
  Contents known = contents_of(config.named_tokens);
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"})
    if (root.has(key)) add_name(root.at(key), known, config.named_tokens);
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    if (!root.has(key) || !root.at(key).is_list()) continue;
    for (const JsonNode& item : root.at(key).items()) add_name(item, known, config.named_tokens);
  }
  if (root.has("bos_token")) config.bos_token = named_token(root.at("bos_token")).content;
  if (root.has("eos_token")) config.eos_token = named_token(root.at("eos_token")).content;
}

/// Reads {"7": {"content": ...}, ...}.
void read_added_tokens_decoder(const JsonNode& added, TokenizerConfig& config) {
  if (!added.is_object()) added.fail("expected an object");
  for (const auto& [key, value] : added.value().items()) {
    const std::optional<int64_t> id = parse_whole_number(key);
    if (!id || *id < 0) added.fail("expected token ids as keys");
    config.added_tokens.push_back(parse_added_token(added.at(key), *id));
  }
}

/// Reads {"text": 7, ...} of checkpoints whose tokenizer_config.json lists no added tokens. The named tokens tell which
/// of them are special.
void read_added_tokens_file(const JsonNode& added, TokenizerConfig& config) {
  if (!added.is_object()) added.fail("expected an object");
  const Contents names = contents_of(config.named_tokens);
  for (const auto& [content, value] : added.value().items()) {
    if (content.empty()) added.fail("an empty token");
    AddedToken token;
    token.id = added.at(content).integer();
    token.content = content;
    token.special = names.contains(token.content);
    token.normalized = !token.special;  // as in transformers
    config.added_tokens.push_back(std::move(token));
  }
}

template <typename Read>
void read_if_there(const std::filesystem::path& file, const Read& read) {
  if (!has_model_file(file)) return;
  const nlohmann::json document = load_json(file);
  read(JsonNode(document, file));
}

}  // namespace

TokenizerConfig load_tokenizer_config(const std::filesystem::path& folder) {
  TokenizerConfig config;
  bool lists_added_tokens = false;
  read_if_there(folder / "tokenizer_config.json", [&](const JsonNode& root) {
    if (root.has("tokenizer_class")) config.tokenizer_class = root.at("tokenizer_class").text();
    config.add_bos_token = flag(root, "add_bos_token");
    config.add_eos_token = flag(root, "add_eos_token");
    config.add_prefix_space = flag(root, "add_prefix_space");
    config.legacy = flag(root, "legacy");
    if (root.find_boolean("split_special_tokens").value_or(false))
      root.at("split_special_tokens").fail("true is not supported: special tokens within a text have their ids");
    read_names(root, config);
    lists_added_tokens = root.has("added_tokens_decoder");
    if (lists_added_tokens) read_added_tokens_decoder(root.at("added_tokens_decoder"), config);
  });
  if (lists_added_tokens) return config;  // then transformers does not read the other two files, which are older
  read_if_there(folder / "special_tokens_map.json", [&](const JsonNode& root) { read_names(root, config); });
  read_if_there(folder / "added_tokens.json", [&](const JsonNode& root) { read_added_tokens_file(root, config); });
  return config;
}

AddedToken parse_added_token(const JsonNode& node, TokenId id) {
  AddedToken token;
  token.id = id;
  token.content = node.at("content").text();
  if (token.content.empty()) node.at("content").fail("an empty token");
  token.single_word = node.find_boolean("single_word").value_or(false);
  token.lstrip = node.find_boolean("lstrip").value_or(false);
  token.rstrip = node.find_boolean("rstrip").value_or(false);
  token.special = node.find_boolean("special").value_or(false);
  token.normalized = node.find_boolean("normalized").value_or(!token.special);  // Hugging Face's default
  return token;
}

namespace {

/// Returns where the character before `at` begins.
size_t character_before(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && !begins_character(text[at]));
  return at;
}

size_t white_space_after(std::string_view text, size_t at) {
  while (at < text.size()) {
    const CodePoint next = decode_utf8_at(text, at);
    if (!is_white_space(next.value)) break;
    at += next.bytes;
  }
  return at;
}

size_t white_space_before(std::string_view text, size_t at, size_t limit) {
  while (at > limit) {
    const size_t lead = character_before(text, at);
    if (!is_white_space(decode_utf8_at(text, lead).value)) break;
    at = lead;
  }
  return at;
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  const bool goes_on_before = begin > 0 && is_word_character(decode_utf8_at(text, character_before(text, begin)).value);
  const bool goes_on_behind = end < text.size() && is_word_character(decode_utf8_at(text, end).value);
  return !goes_on_before && !goes_on_behind;
}

uint64_t step_from(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<uint8_t>(byte); }

}  // namespace

void AddedTokenFinder::add(std::string_view pattern, const AddedToken& token) {
  begins_[static_cast<uint8_t>(pattern.front())] = true;
  uint32_t node = 0;
  for (const char byte : pattern) {
    const auto [at, is_new] = next_.try_emplace(step_from(node, byte), static_cast<uint32_t>(token_at_.size()));
    if (is_new) token_at_.push_back(nullptr);
    node = at->second;
  }
  if (token_at_[node] == nullptr) token_at_[node] = &token;
}

AddedTokenFinder::Match AddedTokenFinder::longest_at(std::string_view text, size_t at) const {
  Match found;
  if (!begins_[static_cast<uint8_t>(text[at])]) return found;
  uint32_t node = 0;
  while (at < text.size()) {
    const auto next = next_.find(step_from(node, text[at++]));
    if (next == next_.end()) break;
    node = next->second;
    if (token_at_[node] != nullptr) found = {token_at_[node], at};
  }
  return found;
}

std::vector<TextPart> AddedTokenFinder::split(std::string_view text) const {
  std::vector<TextPart> parts;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const auto [token, match_end] = longest_at(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    if (token->single_word && !stands_alone(text, at, match_end)) {
      at = match_end;  // the library does not search inside a match that it drops
      continue;
    }
    const size_t begin = token->lstrip ? white_space_before(text, at, done) : at;
    const size_t end = token->rstrip ? white_space_after(text, match_end) : match_end;
    if (done < begin) parts.push_back({nullptr, done, begin});
    parts.push_back({token, begin, end});
    done = end;
    at = match_end;  // not `end`, because the next token may begin with white space
  }
  if (done < text.size()) parts.push_back({nullptr, done, text.size()});
  return parts;
}

}  // namespace lancet
