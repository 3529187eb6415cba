// How an instruct model wants a conversation wrapped before it answers. Checkpoints say it as a Jinja program, which is
// run within limits (lancet/jinja/jinja_template.h).
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

/// How an answer begins, of models that can think before it.
enum class Thinking {
  kAsTemplate,  ///< what apply_chat_template(...) has by default
  kWanted,      ///< enable_thinking=True, and `thinking=True`, where the template reads one of them
  kNone         ///< the answer itself: both are False; a thought that the template opens all the same is closed, empty
};

/// A turn of a conversation.
struct ChatMessage {
  std::string role = {};  ///< "system", "user", "assistant"; others as the template knows them
  std::string content = {};
};

class ChatTemplate {
 public:
  /// The one in `folder`: chat_template.jinja, or chat_template in tokenizer_config.json (of several the one named
  /// "default"). Throws: TokenizerError when there is none, or one that does not wrap a user's message; it names the
  /// file and the line.
  static ChatTemplate of(const std::filesystem::path& folder);

  /// `pattern` has exactly one {}, where the user's text goes: "USER: {} ASSISTANT:". Throws: ConfigError.
  static ChatTemplate by_hand(std::string_view pattern);

  /// "the model's"; "by hand".
  const std::string& name() const { return name_; }

  /// What transformers' apply_chat_template(..., tokenize=False, add_generation_prompt=True) gives for one user
  /// message. A template that names the day has that of of(). Throws: as render().
  std::string wrap(std::string_view user_text, Thinking thinking = Thinking::kAsTemplate) const;

  /// As wrap(), for a conversation, and the day is today's. Throws: TokenizerError for what the template refuses, in
  /// its own words, and for a message of a user or of the system that it leaves out; ConfigError for a conversation
  /// where the template is by hand.
  std::string render(std::span<const ChatMessage> messages, Thinking thinking = Thinking::kAsTemplate) const;

  /// Returns the message's ids. Special tokens become their ids, also those that the user's text spells; BOS stands
  /// once where the template or the tokenizer has it. (apply_chat_template(..., tokenize=True) leaves it out where the
  /// template does.) Throws: as render(), and TokenizerError when the tokenizer cuts one of the template's special
  /// tokens into pieces.
  std::vector<TokenId> ids(const Tokenizer& tokenizer, std::string_view user_text,
                           Thinking thinking = Thinking::kAsTemplate) const;
  std::vector<TokenId> ids(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                           Thinking thinking = Thinking::kAsTemplate) const;

  /// A context template: what wrap() makes of the prompt in its place, for an answer without thinking before it. A text
  /// in which encode() puts BOS once. Throws: as ids() does, and TokenizerError where the text around a prompt depends
  /// on the prompt.
  std::string context(const Tokenizer& tokenizer) const;

  /// Tokens that end an answer, besides the model's EOS: the one that the template puts after an assistant's turn.
  std::vector<TokenId> end_ids(const Tokenizer& tokenizer) const;

  /// What stands between a thought and the answer: "</think>", unless the template has another mark.
  std::string_view end_of_thoughts() const;

 private:
  struct Program;
  struct Place;

  std::string run(std::span<const ChatMessage> messages, Thinking thinking, const std::tm& now) const;
  Place place_of_user(Thinking thinking) const;
  std::vector<TokenId> ids_of(const Tokenizer& tokenizer, const std::string& text) const;
  void check_special(const Tokenizer& tokenizer, std::string_view text) const;

  std::string name_, before_, after_;       ///< the latter two of a template by hand
  std::shared_ptr<const Program> program_;  ///< null: by hand
};

}  // namespace lancet
