#include "lancet/text/chat_template.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "chat_program.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/text/prompt.h"

namespace lancet {
namespace {

constexpr std::string_view kTemplateRemedy =
    "give it by hand as a text with {} for the user's words (--chat-template, or evaluate.chat_template of a job: "
    "'USER: {} ASSISTANT:'), as the model's description shows it";

/// Two texts that occur in no template. They show where a user's text goes, and whether the text around it depends on
/// it.
constexpr std::array<std::string_view, 2> kUserMarks{"qzUserq1", "qzTwo words of a userq2."};
constexpr std::string_view kAssistantMark = "qzAssistantq3";

/// Marks of turns that are single tokens in every model that uses them.
constexpr std::string_view kTurnMarks[] = {"<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>",
                                           "<|eot_id|>",   "<|im_sep|>", "<start_of_turn>",     "<end_of_turn>"};

/// Marks of thoughts in templates. If a template has several, the first one is used.
struct ThoughtMarks {
  std::string_view open, close;
};
constexpr ThoughtMarks kThoughtMarks[] = {{"<think>", "</think>"},
                                          {"<seed:think>", "</seed:think>"},
                                          {"<thought>", "</thought>"},
                                          {"[THINK]", "[/THINK]"},
                                          {"<|START_THINKING|>", "<|END_THINKING|>"},
                                          {"<|channel|>analysis", "<|channel|>final<|message|>"}};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

size_t occurrences_in(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++count;
  return count;
}

/// Closes a thought that is open at the text's end, as Qwen3's template does if no thought is wanted:
/// "<think>\n\n</think>\n\n".
std::string with_thought_closed(std::string text) {
  const size_t end = text.find_last_not_of(kAsciiWhiteSpace) + 1;
  for (const ThoughtMarks& marks : kThoughtMarks) {
    if (!std::string_view(text).substr(0, end).ends_with(marks.open)) continue;
    text.resize(end);
    return cat(text, "\n\n", marks.close, "\n\n");
  }
  return text;
}

bool reads_back(const Tokenizer& tokenizer, std::string_view token) {
  return tokenizer.ids(token, SpecialTokens::kNone).size() == 1;
}

/// Whether the token ends turns: it is not text, or its spelling is one of these marks.
bool marks_turn(const Tokenizer& tokenizer, TokenId id, std::string_view piece) {
  return tokenizer.decode(std::array{id}).empty() || (piece.size() > 2 && piece.front() == '<' && piece.back() == '>');
}

std::string_view without_blanks(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kAsciiWhiteSpace), text.size());
  return text.substr(begin, text.find_last_not_of(kAsciiWhiteSpace) + 1 - begin);
}

}  // namespace

struct ChatTemplate::Program {
  JinjaTemplate jinja;
  ChatTemplateText source;
  JinjaDataMap tokens;
  std::tm time;  ///< the time of wrap()
};

/// The text around a user's text.
struct ChatTemplate::Place {
  std::string before, after;
};

ChatTemplate ChatTemplate::of(const std::filesystem::path& folder) {
  std::optional<ChatTemplateText> source = find_chat_source(folder);
  if (!source)
    throw TokenizerError(cat("chat template: ", folder.string(),
                             ": no chat_template.jinja, and no chat_template in tokenizer_config.json: is it an "
                             "instruct model? If so, ",
                             kTemplateRemedy));
  ChatTemplate made;
  made.name_ = "the model's";
  try {
    JinjaTemplate jinja(source->jinja);
    made.program_ = std::make_shared<Program>(Program{std::move(jinja), *source, chat_tokens(folder), chat_time()});
  } catch (const JinjaError& error) {
    throw TokenizerError(cat("chat template: ", source->file.string(), ", ", error.what(), ": ", kTemplateRemedy));
  }
  const std::string probe = made.wrap(kUserMarks[0]);
  if (const size_t count = occurrences_in(probe, kUserMarks[0]); count != 1)
    throw TokenizerError(cat("chat template: ", source->file.string(),
                             ": expected the user's text once in what it makes, got it ", count,
                             " times: ", kTemplateRemedy));
  return made;
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

namespace {

JinjaDataMap chat_variables(std::span<const ChatMessage> messages, Thinking thinking, const JinjaDataMap& tokens) {
  JinjaDataList list;
  for (const ChatMessage& message : messages)
    list.push_back({JinjaDataMap{{"role", {message.role}}, {"content", {message.content}}}});
  JinjaDataMap variables = tokens;
  variables.emplace_back("messages", JinjaData{std::move(list)});
  variables.emplace_back("tools", JinjaData{});
  variables.emplace_back("documents", JinjaData{});
  variables.emplace_back("add_generation_prompt", JinjaData{true});
  if (thinking != Thinking::kAsTemplate)
    for (const char* name : {"enable_thinking", "thinking"})
      variables.emplace_back(name, JinjaData{thinking == Thinking::kWanted});
  return variables;
}

/// Reports a failed run as an error of the conversation, or of the template.
[[noreturn]] void refuse_chat(const ChatTemplateText& source, const JinjaError& error) {
  if (error.cause() == JinjaError::Cause::kRaised)
    throw TokenizerError(cat("the model's chat template refuses these messages: ", error.reason(), " (",
                             source.file.string(), ", line ", error.line(), ")"));
  throw TokenizerError(cat("chat template: ", source.file.string(), ", ", error.what(), ": ", kTemplateRemedy));
}

}  // namespace

std::string ChatTemplate::run(std::span<const ChatMessage> messages, Thinking thinking, const std::tm& now) const {
  try {
    std::string text = program_->jinja.render(chat_variables(messages, thinking, program_->tokens), now);
    return thinking == Thinking::kNone ? with_thought_closed(std::move(text)) : text;
  } catch (const JinjaError& error) {
    refuse_chat(program_->source, error);
  }
}

std::string ChatTemplate::wrap(std::string_view user_text, Thinking thinking) const {
  if (!program_) return cat(before_, user_text, after_);
  const ChatMessage message{"user", std::string(user_text)};
  return run({&message, 1}, thinking, program_->time);
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages, Thinking thinking) const {
  if (!program_) {
    if (messages.size() != 1 || messages[0].role != "user")
      throw ConfigError(cat("a chat template by hand says what one message of the user becomes: expected one, got ",
                            messages.size(), messages.size() == 1 ? " of another role" : ""));
    return wrap(messages[0].content, thinking);
  }
  const std::string text = run(messages, thinking, chat_time());
  for (size_t i = 0; i < messages.size(); ++i)
    if (messages[i].role != "assistant" && !contains(text, without_blanks(messages[i].content)))
      throw TokenizerError(cat("the model's chat template (", program_->source.file.string(), ") leaves out message ",
                               i + 1, ", of the role ", messages[i].role,
                               ": leave it out yourself, or give it another role"));
  return text;
}

void ChatTemplate::check_special(const Tokenizer& tokenizer, std::string_view text) const {
  if (!program_) return;
  for (const std::string_view mark : kTurnMarks)
    if (contains(program_->source.jinja, mark) && contains(text, mark) && !reads_back(tokenizer, mark))
      throw TokenizerError(cat("chat template ", name_, ": the tokenizer (", tokenizer.description(), ") cuts ", mark,
                               " into pieces, expected one token: save the tokenizer as tokenizer.json "
                               "(AutoTokenizer.from_pretrained(folder).save_pretrained(folder) in transformers)"));
}

ChatTemplate::Place ChatTemplate::place_of_user(Thinking thinking) const {
  if (!program_) return {before_, after_};
  std::array<Place, kUserMarks.size()> places;
  for (size_t i = 0; i < kUserMarks.size(); ++i) {
    const std::string text = wrap(kUserMarks[i], thinking);
    const size_t at = text.find(kUserMarks[i]);
    if (at != std::string::npos) places[i] = {text.substr(0, at), text.substr(at + kUserMarks[i].size())};
    if (occurrences_in(text, kUserMarks[i]) != 1 || places[i].before != places[0].before ||
        places[i].after != places[0].after)
      throw TokenizerError(cat("chat template: ", program_->source.file.string(),
                               ": expected a text around the user's that does not depend on it: ", kTemplateRemedy));
  }
  return places[0];
}

std::string ChatTemplate::context(const Tokenizer& tokenizer) const {
  const Place place = place_of_user(Thinking::kNone);
  std::string text = cat(place.before, kPlaceMark, place.after);
  check_special(tokenizer, text);
  const std::string bos = tokenizer.adds_bos() ? tokenizer.piece(*tokenizer.bos_id()) : "";
  if (text.starts_with(bos)) text.erase(0, bos.size());
  if (!has_one_place(text))
    throw TokenizerError(cat("chat template: ", program_ ? program_->source.file.string() : name_,
                             ": has {} in a text of its own, where a context's prompt would go: ", kTemplateRemedy));
  return text;
}

std::vector<TokenId> ChatTemplate::ids_of(const Tokenizer& tokenizer, const std::string& text) const {
  check_special(tokenizer, text);
  const std::optional<TokenId> bos = tokenizer.bos_id();
  const std::string bos_text = bos ? tokenizer.piece(*bos) : "";
  if (!bos || !text.starts_with(bos_text)) return tokenizer.ids(text);
  if (reads_back(tokenizer, bos_text)) return tokenizer.ids(text, SpecialTokens::kNone);
  std::vector<TokenId> ids = tokenizer.ids(std::string_view(text).substr(bos_text.size()), SpecialTokens::kNone);
  ids.insert(ids.begin(), *bos);
  return ids;
}

std::vector<TokenId> ChatTemplate::ids(const Tokenizer& tokenizer, std::string_view user_text,
                                       Thinking thinking) const {
  return ids_of(tokenizer, wrap(user_text, thinking));
}

std::vector<TokenId> ChatTemplate::ids(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                                       Thinking thinking) const {
  return ids_of(tokenizer, render(messages, thinking));
}

std::vector<TokenId> ChatTemplate::end_ids(const Tokenizer& tokenizer) const {
  if (!program_) return {};
  const std::array<ChatMessage, 2> turns{ChatMessage{"user", std::string(kUserMarks[0])},
                                         ChatMessage{"assistant", std::string(kAssistantMark)}};
  std::string text;
  try {
    text = run(turns, Thinking::kAsTemplate, program_->time);
  } catch (const TokenizerError&) {
    return {};  // a template for single questions: only EOS ends their answers
  }
  const size_t mark = text.rfind(kAssistantMark);
  if (mark == std::string::npos) return {};
  const std::string_view rest = without_blanks(std::string_view(text).substr(mark + kAssistantMark.size()));
  const std::vector<TokenId> ids = tokenizer.ids(rest, SpecialTokens::kNone);
  if (ids.empty()) return {};
  const std::string piece = tokenizer.piece(ids.front());
  if (!rest.starts_with(piece) || !marks_turn(tokenizer, ids.front(), piece)) return {};
  return {ids.front()};
}

std::string_view ChatTemplate::end_of_thoughts() const {
  if (program_)
    for (const ThoughtMarks& marks : kThoughtMarks)
      if (contains(program_->source.jinja, marks.close) || contains(program_->source.jinja, marks.open))
        return marks.close;
  return kThoughtMarks[0].close;
}

}  // namespace lancet
