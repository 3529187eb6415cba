// The chat template of an instruct model: how a conversation must be wrapped before the model answers. Checkpoints
// store it as a Jinja program, which runs within limits (lancet/jinja/jinja_template.h).
#pragma once

#include <ctime>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/text/tokenizer.h"

namespace lancet {

/// How an answer begins, for models that can think before it.
enum class Thinking {
  kAsTemplate,  ///< the default of apply_chat_template(...)
  kWanted,      ///< enable_thinking=True and `thinking=True`, if the template reads one of them
  kNone         ///< no thinking: both are False; if the template opens a thought anyway, it is closed at once, empty
};

/// A turn of a conversation.
struct ChatMessage {
  std::string role = {};  ///< "system", "user", "assistant", or others that the template knows
  std::string content = {};
};

class ChatTemplate {
 public:
  /// Reads the template in `folder`: chat_template.jinja, or chat_template in tokenizer_config.json (if there are
  /// several, the one named "default"). Throws: TokenizerError, with the file and the line, when there is no template,
  /// or one that does not wrap a user's message.
  static ChatTemplate of(const std::filesystem::path& folder);

  /// Makes a template from `pattern`, which has exactly one {} in place of the user's text: "USER: {} ASSISTANT:".
  /// Throws: ConfigError.
  static ChatTemplate by_hand(std::string_view pattern);

  /// Returns "the model's" or "by hand".
  const std::string& name() const { return name_; }

  /// Returns what transformers' apply_chat_template(..., tokenize=False, add_generation_prompt=True) returns for one
  /// user message. A template that uses the date gets the date at which of() was called. Throws: as render().
  std::string wrap(std::string_view user_text, Thinking thinking = Thinking::kAsTemplate) const;

  /// Wraps a conversation like wrap(), but with today's date. Throws: TokenizerError when the template refuses, in its
  /// own words, and when it leaves out a message of a user or of the system; ConfigError for a conversation if the
  /// template was made by hand.
  std::string render(std::span<const ChatMessage> messages, Thinking thinking = Thinking::kAsTemplate) const;

  /// Returns the ids of the wrapped message. Special tokens become their ids, even those that the user's text spells.
  /// BOS appears once if the template or the tokenizer has it. (apply_chat_template(..., tokenize=True) omits it if the
  /// template does.) Throws: as render(), and TokenizerError when the tokenizer splits one of the template's special
  /// tokens.
  std::vector<TokenId> ids(const Tokenizer& tokenizer, std::string_view user_text,
                           Thinking thinking = Thinking::kAsTemplate) const;
  std::vector<TokenId> ids(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                           Thinking thinking = Thinking::kAsTemplate) const;

  /// Returns a context template: what wrap() makes of the prompt, for an answer without thinking before it. encode() of
  /// the text has BOS once. Throws: as ids(), and TokenizerError when the text around a prompt depends on the prompt.
  std::string context(const Tokenizer& tokenizer) const;

  /// Returns the tokens that end an answer, in addition to the model's EOS: the token that the template puts after an
  /// assistant's turn.
  std::vector<TokenId> end_ids(const Tokenizer& tokenizer) const;

  /// Returns the mark between a thought and the answer: "</think>", unless the template has another one.
  std::string_view end_of_thoughts() const;

 private:
  struct Program;
  struct Place;

  std::string run(std::span<const ChatMessage> messages, Thinking thinking, const std::tm& now) const;
  Place place_of_user(Thinking thinking) const;
  std::vector<TokenId> ids_of(const Tokenizer& tokenizer, const std::string& text) const;
  void check_special(const Tokenizer& tokenizer, std::string_view text) const;

  std::string name_, before_, after_;       ///< the latter two only for a template by hand
  std::shared_ptr<const Program> program_;  ///< null: template by hand
};

}  // namespace lancet
