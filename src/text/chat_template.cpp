#include "lancet/text/chat_template.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "known_templates.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/text/prompt.h"
#include "lancet/tokenizer_files/json_node.h"
#include "lancet/tokenizer_files/tokenizer_config.h"

namespace lancet {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// The Jinja text without the freedoms of its spelling: kinds of quotes, how a line's end is written in them, spaces
/// beside operators and inside of braces.
std::string comparable(std::string jinja) {
  for (const auto& [from, to] :
       {std::pair{"\r\n", "\n"}, std::pair{"\\n", "\n"}, std::pair{"\"", "'"}, std::pair{"{{-", "{{"}})
    replace_all(jinja, from, to);
  for (const std::string_view sign : {"+", "|", "=", "}}"}) replace_all(jinja, cat(" ", sign), sign);
  for (const std::string_view sign : {"+", "|", "=", "{{"}) replace_all(jinja, cat(sign, " "), sign);
  return jinja;
}

/// Strips the white space at both ends, as Python's strip() takes it.
std::string_view stripped(std::string_view text) {
  const auto is_blank_at = [&](size_t at) {
    const char32_t character = decode_utf8_at(text, at).value;
    return is_white_space(character) || (character >= 0x1C && character <= 0x1F);
  };
  while (!text.empty() && is_blank_at(0)) text.remove_prefix(utf8_bytes(text[0]));
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && !begins_character(text[last])) --last;
    if (!is_blank_at(last)) break;
    text = text.substr(0, last);
  }
  return text;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

constexpr std::string_view kTemplateRemedy =
    "give it by hand as a text with {} for the user's words (--chat-template, or evaluate.chat_template of a job: "
    "'USER: {} ASSISTANT:'), as the model's description shows it";

/// The Jinja text, and the file it is from.
struct Source {
  std::string jinja;
  std::filesystem::path file;
};

std::optional<Source> find_source(const std::filesystem::path& folder) {
  const std::filesystem::path own = folder / "chat_template.jinja", config = folder / "tokenizer_config.json";
  if (has_model_file(own)) return Source{read_model_file(own, "chat template"), own};
  if (!has_model_file(config)) return std::nullopt;
  const nlohmann::json document = load_json(config);
  const JsonNode root(document, config);
  if (!root.has("chat_template")) return std::nullopt;
  const JsonNode value = root.at("chat_template");
  if (!value.is_list()) return Source{value.text(), config};
  for (const JsonNode& item : value.items())
    if (item.at("name").text() == "default") return Source{item.at("template").text(), config};
  value.fail("expected one that is named \"default\"");
}

bool reads_back(const Tokenizer& tokenizer, const std::string& token) {
  return tokenizer.ids(token, SpecialTokens::kNone).size() == 1;
}

}  // namespace

ChatTemplate ChatTemplate::of(const std::filesystem::path& folder) {
  const std::optional<Source> source = find_source(folder);
  if (!source)
    throw TokenizerError(cat("chat template: ", folder.string(),
                             ": no chat_template.jinja, and no chat_template in tokenizer_config.json: is it an "
                             "instruct model? If so, ",
                             kTemplateRemedy));
  const std::string jinja = comparable(source->jinja);
  const TokenizerConfig config = load_tokenizer_config(folder);
  std::vector<std::string> names;
  for (const KnownTemplate& known : known_templates()) {
    if (names.empty() || names.back() != known.name) names.emplace_back(known.name);  // variants stand together
    const auto is_there = [&](std::string_view part) { return contains(jinja, part); };
    if (!std::all_of(known.has.begin(), known.has.end(), is_there)) continue;
    if (std::any_of(known.has_not.begin(), known.has_not.end(), is_there)) continue;
    const std::string bos = config.bos_token.value_or(""), eos = config.eos_token.value_or("");
    std::string pattern(known.pattern);
    if (pattern.starts_with("BOS")) pattern.replace(0, 3, bos);
    replace_all(pattern, "EOS", eos);
    ChatTemplate made = by_hand(pattern);
    made.name_ = known.name;
    made.is_trimmed_ = known.is_trimmed;
    made.special_.assign(known.special.begin(), known.special.end());
    for (std::string& token : made.special_) replace_all(token, "EOS", eos);
    made.no_thinking_ = known.no_thinking;
    made.end_ = known.end;
    return made;
  }
  throw TokenizerError(cat("chat template: ", source->file.string(), ": expected one of those that lancet knows (",
                           join(names), "), got another: ", kTemplateRemedy));
}

ChatTemplate ChatTemplate::by_hand(std::string_view pattern) {
  if (!has_one_place(pattern))
    throw ConfigError(cat("chat template: '", pattern, "': expected exactly one {}, where the user's text goes"));
  const size_t at = pattern.find(kPlaceMark);
  ChatTemplate made;
  made.name_ = "by hand";
  made.before_ = pattern.substr(0, at);
  made.after_ = pattern.substr(at + kPlaceMark.size());
  return made;
}

std::string ChatTemplate::wrap(std::string_view user_text, Thinking thinking) const {
  const std::string_view beginning = thinking == Thinking::kNone ? std::string_view(no_thinking_) : "";
  return cat(before_, is_trimmed_ ? stripped(user_text) : user_text, after_, beginning);
}

void ChatTemplate::check_special(const Tokenizer& tokenizer) const {
  for (const std::string& token : special_)
    if (!reads_back(tokenizer, token))
      throw TokenizerError(cat("chat template ", name_, ": the tokenizer (", tokenizer.description(), ") cuts ", token,
                               " into pieces, expected one token: save the tokenizer as tokenizer.json "
                               "(AutoTokenizer.from_pretrained(folder).save_pretrained(folder) in transformers)"));
}

std::string ChatTemplate::context(const Tokenizer& tokenizer) const {
  check_special(tokenizer);
  std::string text = cat(before_, kPlaceMark, after_, no_thinking_);
  const std::string bos = tokenizer.adds_bos() ? tokenizer.piece(*tokenizer.bos_id()) : "";
  return text.starts_with(bos) ? text.substr(bos.size()) : text;
}

std::vector<TokenId> ChatTemplate::ids(const Tokenizer& tokenizer, std::string_view user_text,
                                       Thinking thinking) const {
  check_special(tokenizer);
  const std::string text = wrap(user_text, thinking);
  const std::optional<TokenId> bos = tokenizer.bos_id();
  const std::string bos_text = bos ? tokenizer.piece(*bos) : "";
  if (!bos || !text.starts_with(bos_text)) return tokenizer.ids(text);
  if (reads_back(tokenizer, bos_text)) return tokenizer.ids(text, SpecialTokens::kNone);
  std::vector<TokenId> ids = tokenizer.ids(std::string_view(text).substr(bos_text.size()), SpecialTokens::kNone);
  ids.insert(ids.begin(), *bos);
  return ids;
}

std::vector<TokenId> ChatTemplate::end_ids(const Tokenizer& tokenizer) const {
  return end_.empty() ? std::vector<TokenId>{} : tokenizer.ids(end_, SpecialTokens::kNone);
}

}  // namespace lancet
