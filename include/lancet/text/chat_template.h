// How an instruct model wants a user's text wrapped before it answers. Checkpoints say it as a Jinja program; lancet
// runs none, but knows the text that a few common ones make of one user message and the start of an answer.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/text/tokenizer.h"

namespace lancet {

/// How an answer begins, of models that can think before it.
enum class Thinking {
  kAsTemplate,  ///< the model may think: what apply_chat_template(...) has by default
  kNone         ///< the answer itself: enable_thinking=False, where the template has that
};

class ChatTemplate {
 public:
  /// The one in `folder`: chat_template.jinja, or chat_template in tokenizer_config.json (of several the one named
  /// "default"). Known ones are recognised by what their text has and has not, not by the model's name.
  /// Throws: TokenizerError when there is none, or one that is not known: use by_hand.
  static ChatTemplate of(const std::filesystem::path& folder);

  /// `pattern` has exactly one {}, where the user's text goes: "USER: {} ASSISTANT:". Throws: ConfigError.
  static ChatTemplate by_hand(std::string_view pattern);

  /// "llama-3"; "by hand".
  const std::string& name() const { return name_; }

  /// What transformers' apply_chat_template(..., tokenize=False, add_generation_prompt=True) gives for one user
  /// message. Templates that name the day name 26 Jul 2024, their own default.
  std::string wrap(std::string_view user_text, Thinking thinking = Thinking::kAsTemplate) const;

  /// Returns the message's ids. Special tokens become their ids, also those that the user's text spells; BOS stands
  /// once where the template or the tokenizer has it. (apply_chat_template(..., tokenize=True) leaves it out where the
  /// template does.) Throws: TokenizerError when the tokenizer cuts one of the template's special tokens into pieces.
  std::vector<TokenId> ids(const Tokenizer& tokenizer, std::string_view user_text,
                           Thinking thinking = Thinking::kAsTemplate) const;

  /// A context template: what wrap() makes of the prompt in its place, for an answer without thinking before it. A text
  /// in which encode() puts BOS once. Throws: as ids() does.
  std::string context(const Tokenizer& tokenizer) const;

  /// Tokens that end an answer, besides the model's EOS.
  std::vector<TokenId> end_ids(const Tokenizer& tokenizer) const;

 private:
  void check_special(const Tokenizer& tokenizer) const;

  std::string name_, before_, after_;
  std::string no_thinking_;           ///< put after after_; may be empty
  bool is_trimmed_ = false;           ///< the user's text loses white space at both ends
  std::vector<std::string> special_;  ///< tokens that the tokenizer must know
  std::string end_;                   ///< empty: EOS alone
};

}  // namespace lancet
