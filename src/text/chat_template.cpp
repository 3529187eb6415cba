#include "lancet/text/chat_template.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "json_node.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/text/prompt.h"
#include "model_file.h"
#include "tokenizer_config.h"

namespace lancet {
namespace {

constexpr std::string_view kWhiteSpace = " \t\n\r\f\v";

/// A template as data. Its texts are facts of public checkpoints.
struct KnownTemplate {
  std::string_view name;
  std::string_view pattern;  ///< BOS and EOS: the checkpoint's own tokens
  bool is_trimmed = false;   ///< as in ChatTemplate
  std::vector<std::string_view> special = {};
  std::string_view end = {};
  std::vector<std::string_view> has;           ///< parts of the Jinja text, as `comparable` makes it
  std::vector<std::string_view> has_not = {};  ///< what would make another text of one user message
};

const std::vector<std::string_view> kHeaders{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
const std::vector<std::string_view> kTurns{"<|im_start|>", "<|im_end|>"};
constexpr std::string_view kHeaderTurn =
    "'<|start_header_id|>'+message['role']+'<|end_header_id|>\n\n'+message['content']|trim+'<|eot_id|>'";
constexpr std::string_view kMarkedTurn =
    "'<|im_start|>'+message['role']+'\n'+message['content']+'<|im_end|>'+'\n'}}{% endfor %}";

const std::vector<KnownTemplate> kKnown{
    {.name = "llama-2",
     .pattern = "BOS[INST] {} [/INST]",
     .is_trimmed = true,
     .has = {"{{bos_token+'[INST] '+content.strip()+' [/INST]'}}{%"},
     .has_not = {"DEFAULT_SYSTEM_MESSAGE"}},
    {.name = "mistral",
     .pattern = "BOS[INST] {} [/INST]",
     .has = {"{{bos_token}}{%", "{{'[INST] '+message['content']+' [/INST]'}}{%"},
     .has_not = {"<<SYS>>"}},
    {.name = "llama-3",
     .pattern = "BOS<|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|>"
                "<|start_header_id|>assistant<|end_header_id|>\n\n",
     .is_trimmed = true,
     .special = kHeaders,
     .end = "<|eot_id|>",
     .has = {kHeaderTurn, "set content=bos_token+content", "{{content}}{%",
             "{{'<|start_header_id|>assistant<|end_header_id|>\n\n'}}"},
     .has_not = {"Cutting Knowledge Date", "tools", "\n\n'}}\n"}},
    {.name = "llama-3.1",  // and 3.2, 3.3
     .pattern = "BOS<|start_header_id|>system<|end_header_id|>\n\n"
                "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n<|eot_id|>"
                "<|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|>"
                "<|start_header_id|>assistant<|end_header_id|>\n\n",
     .is_trimmed = true,
     .special = kHeaders,
     .end = "<|eot_id|>",
     .has = {"{{bos_token}}", "set system_message=''", "{{'Cutting Knowledge Date: December 2023\n'}}",
             "{{'Today Date: '+date_string+'\n\n'}}", "set date_string='26 Jul 2024'", kHeaderTurn,
             "{{'<|start_header_id|>assistant<|end_header_id|>\n\n'}}\n{%- endif %}"},
     .has_not = {"if system_message"}},
    {.name = "zephyr",  // and TinyLlama; the line's end stands behind the expression
     .pattern = "<|user|>\n{}EOS\n<|assistant|>\n",
     .special = {"EOS"},
     .has = {"{{'<|user|>\n'+message['content']+eos_token}}\n{% elif", "{{'<|assistant|>'}}\n{% endif"},
     .has_not = {"bos_token"}},
    {.name = "chatml",
     .pattern = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
     .special = kTurns,
     .end = "<|im_end|>",
     .has = {kMarkedTurn, "{{'<|im_start|>assistant\n'}}{% endif"},
     .has_not = {"bos_token", "<|im_start|>system", "tools"}},
    {.name = "smollm",
     .pattern = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
                "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
     .special = kTurns,
     .end = "<|im_end|>",
     .has = {kMarkedTurn, "{{'<|im_start|>assistant\n'}}{% endif",
             "{{'<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
             "Face<|im_end|>\n'}}{% endif"},
     .has_not = {"bos_token", "tools"}},
};

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

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

constexpr std::string_view kRemedy =
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
                             kRemedy));
  const std::string jinja = comparable(source->jinja);
  const TokenizerConfig config = load_tokenizer_config(folder);
  std::vector<std::string> names;
  for (const KnownTemplate& known : kKnown) {
    names.emplace_back(known.name);
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
    made.end_ = known.end;
    return made;
  }
  throw TokenizerError(cat("chat template: ", source->file.string(), ": expected one of those that lancet knows (",
                           join(names), "), got another: ", kRemedy));
}

ChatTemplate ChatTemplate::by_hand(std::string_view pattern) {
  const size_t at = pattern.find(kPlaceMark);
  if (at == std::string_view::npos || pattern.find(kPlaceMark, at + kPlaceMark.size()) != std::string_view::npos)
    throw ConfigError(cat("chat template: '", pattern, "': expected exactly one {}, where the user's text goes"));
  ChatTemplate made;
  made.name_ = "by hand";
  made.before_ = pattern.substr(0, at);
  made.after_ = pattern.substr(at + kPlaceMark.size());
  return made;
}

std::string ChatTemplate::wrap(std::string_view user_text) const {
  if (is_trimmed_) {
    user_text.remove_prefix(std::min(user_text.find_first_not_of(kWhiteSpace), user_text.size()));
    user_text = user_text.substr(0, user_text.find_last_not_of(kWhiteSpace) + 1);
  }
  return cat(before_, user_text, after_);
}

std::vector<TokenId> ChatTemplate::ids(const Tokenizer& tokenizer, std::string_view user_text) const {
  for (const std::string& token : special_)
    if (!reads_back(tokenizer, token))
      throw TokenizerError(cat("chat template ", name_, ": the tokenizer (", tokenizer.description(), ") cuts ", token,
                               " into pieces, expected one token: save the tokenizer as tokenizer.json "
                               "(AutoTokenizer.from_pretrained(folder).save_pretrained(folder) in transformers)"));
  const std::string text = wrap(user_text);
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
