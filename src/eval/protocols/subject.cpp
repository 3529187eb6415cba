// What else the model says about an edited subject. An edit changes one fact of a subject and should not change its
// other facts. Efficacy, paraphrases and prompts about other subjects do not show such damage. So the model gets
// prompts about other facts of the subject before and after the edit, as text and, if it has a chat template, as the
// beginning of an answer to a user.
#include <array>
#include <optional>
#include <set>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/text/prompt.h"
#include "lancet/text_metrics/answer_match.h"
#include "protocols.h"

namespace lancet {
namespace {

/// Used if a record has no prompts about its subject. {} is the subject.
constexpr std::array<std::string_view, 4> kGenericPrompts{"{} is known for", "{} has", "{} was", "What is {}? It is"};
constexpr std::string_view kTextPrompt = "{} is";               ///< the greedy continuation of this prompt is compared
constexpr std::string_view kChatMessage = "Tell me about {}.";  ///< the user's message in a chat

std::string filled(std::string_view text, std::string_view subject) {
  std::string whole(text);
  return whole.replace(whole.find(kPlaceMark), kPlaceMark.size(), subject);
}

std::string without_blanks_at_end(std::string_view text) {
  return std::string(text.substr(0, text.find_last_not_of(" \t\r\n") + 1));
}

/// Returns the template of an instruct model. It is no error if there is none, or if it cannot be read: the subjects
/// are then asked about only in plain text.
std::optional<ChatTemplate> find_chat(const ChatSource& source) {
  if (source.by_hand.empty() && source.model.empty()) return std::nullopt;
  try {
    return find_template(source);
  } catch (const Error&) {
    return std::nullopt;
  }
}

class SubjectProtocol final : public Protocol {
 public:
  SubjectProtocol(std::optional<ChatTemplate> chat, int64_t tokens) : chat_(std::move(chat)), tokens_(tokens) {}

  void see(std::span<const EditRequest> requests) override {
    for (const EditRequest& request : requests) {
      edited_.insert(without_blanks_at_end(request.prompt.text));
      for (const std::string& prompt : request.paraphrases) edited_.insert(without_blanks_at_end(prompt));
    }
  }

  void ask(const EditRequest& request, QuestionCollector& collector) override {
    tokenizer_ = &collector.tokenizer();
    Asked& asked = asked_.emplace_back();
    if (request.subject.empty()) return;
    asked.target = {request.target};
    asked.target.insert(asked.target.end(), request.target_aliases.begin(), request.target_aliases.end());
    const std::vector<std::string> prompts = prompts_about(request);
    for (const std::string& prompt : prompts)
      ask_next(asked, {AskedFor::kNextToken, prompt, 0}, collector.tokenizer().ids(prompt), collector);
    const std::string message = filled(kChatMessage, request.subject);
    const std::optional<std::string> turn = chat_turn(collector.tokenizer(), message);
    for (const std::string& prompt : prompts)
      if (const auto ids = turn ? ids_after(*turn, prompt, collector) : std::nullopt)
        ask_next(asked, {AskedFor::kChatNextToken, cat(message, " ", prompt), 0}, *ids, collector);
    const auto new_tokens = static_cast<size_t>(tokens_);
    if (const std::string prompt = filled(kTextPrompt, request.subject);
        !is_edited(prompt) && collector.has_room(collector.tokenizer().ids(prompt).size() + new_tokens))
      asked.text = Question{AskedFor::kText, prompt, collector.generate(prompt, tokens_)};
    if (turn && !is_edited(message) &&
        collector.has_room(chat_->ids(collector.tokenizer(), message, Thinking::kNone).size() + new_tokens))
      asked.chat_text =
          Question{AskedFor::kChatText, message, collector.chat(*chat_, message, Thinking::kNone, tokens_)};
  }

  std::vector<MetricRow> metrics() const override {
    const std::string generic = join(std::vector<std::string>(kGenericPrompts.begin(), kGenericPrompts.end()), "', '");
    const std::string in_chat = chat_ ? cat(", and the same as beginnings of the answer to '", kChatMessage,
                                            "' (template: ", chat_->name(), ")")
                                      : "";
    return {{"subject_kept", "subject",
             cat("share of prompts that ask for other facts of the edited subjects (the record's locality prompts that "
                 "name the subject, else '",
                 generic, "'; never a prompt or a paraphrase that is edited", in_chat,
                 ") after which the likeliest next token is the one before the edit")},
            {"subject_leak", "subject",
             cat("share of requests for which the greedy continuation (at most ", tokens_, " tokens, to EOS) of '",
                 kTextPrompt, "' contains the new target, or one of its other names, as whole words, of those for ",
                 "which it did not before the edit"),
             Unit::kShare, Better::kLower}};
  }

  Tallies judge(size_t request, const ModelAnswers& now, const ModelAnswers& before) const override {
    if (&now == &before) return {};  // there is nothing to compare: these are the same answers
    const Asked& asked = asked_[request];
    Tallies tallies;
    for (const Question& question : asked.next)
      tallies["subject_kept"].add(next_token(question, now) == next_token(question, before) ? 1 : 0);
    if (!asked.text) return tallies;
    const std::optional<GeneratedText>&text = now.texts[asked.text->place], &old = before.texts[asked.text->place];
    if (text && old && !contains(old->continuation, asked.target))
      tallies["subject_leak"].add(contains(text->continuation, asked.target) ? 1 : 0);
    return tallies;
  }

  std::vector<SubjectAnswer> subject_answers(size_t request, const ModelAnswers& now) const override {
    const Asked& asked = asked_[request];
    std::vector<SubjectAnswer> answers;
    for (const std::optional<Question>& question : {asked.text, asked.chat_text})
      if (question && now.texts[question->place])
        answers.push_back({question->asked, question->prompt, now.texts[question->place]->continuation});
    for (const Question& question : asked.next)
      if (now.scores[question.place])
        answers.push_back({question.asked, question.prompt, tokenizer_->decode(std::array{next_token(question, now)})});
    return answers;
  }

 private:
  struct Question {
    AskedFor asked = AskedFor::kNextToken;
    std::string prompt;
    size_t place = 0;  ///< index of its answer among the scores or the texts
  };
  struct Asked {
    std::vector<std::string> target;  ///< the target and its other names
    std::vector<Question> next;
    std::optional<Question> text, chat_text;
  };

  bool is_edited(std::string_view prompt) const { return edited_.contains(without_blanks_at_end(prompt)); }

  /// Returns the record's own prompts about the subject, if it has some.
  std::vector<std::string> prompts_about(const EditRequest& request) const {
    std::vector<std::string> own, generic;
    for (const ProbeSection& section : request.locality)
      for (const Probe& probe : section.probes)
        if (contains(probe.prompt, std::span(&request.subject, 1)) && !is_edited(probe.prompt))
          own.push_back(probe.prompt);
    if (!own.empty()) return own;
    for (const std::string_view text : kGenericPrompts)
      if (std::string prompt = filled(text, request.subject); !is_edited(prompt)) generic.push_back(std::move(prompt));
    return generic;
  }

  /// Returns the message as a user's turn, up to where the answer begins; nullopt if there is no template that works
  /// with this tokenizer.
  std::optional<std::string> chat_turn(const Tokenizer& tokenizer, std::string_view message) {
    if (!chat_) return std::nullopt;
    try {
      return filled(chat_->context(tokenizer), message);
    } catch (const Error&) {
      chat_.reset();
      return std::nullopt;
    }
  }

  /// Returns the ids of a turn with the beginning of its answer; nullopt if one token would have parts of both.
  static std::optional<std::vector<TokenId>> ids_after(std::string_view turn, std::string_view answer,
                                                       const QuestionCollector& collector) {
    try {
      ContinuedPrompt both = continue_prompt(collector.tokenizer(), turn, answer, collector.where());
      both.prompt.ids.insert(both.prompt.ids.end(), both.target.begin(), both.target.end());
      return std::move(both.prompt.ids);
    } catch (const ConfigError&) {
      return std::nullopt;
    }
  }

  /// Asks for the likeliest token after the ids. This token is not known yet, so any token is scored at its position.
  /// Prompts that are too long for the model are left out.
  static void ask_next(Asked& asked, Question question, std::vector<TokenId> ids, QuestionCollector& collector) {
    if (ids.empty() || !collector.has_room(ids.size() + 1)) return;
    const TokenId any = ids.back();
    question.place = collector.score_ids({std::move(ids), {any}});
    asked.next.push_back(std::move(question));
  }

  static TokenId next_token(const Question& question, const ModelAnswers& answers) {
    return answers.scores[question.place]->argmax.front();
  }

  std::optional<ChatTemplate> chat_;  ///< nullopt: the model has no template
  int64_t tokens_;
  const Tokenizer* tokenizer_ = nullptr;
  std::set<std::string> edited_;  ///< all prompts of edited facts
  std::vector<Asked> asked_;      ///< one for each request
};

}  // namespace

std::string_view asked_for_name(AskedFor asked) {
  constexpr std::array<std::string_view, 4> kNames{"next_token", "chat_next_token", "text", "chat_text"};
  return kNames[static_cast<size_t>(asked)];
}

std::unique_ptr<Protocol> make_subject(const EvaluationOptions& options) {
  return std::make_unique<SubjectProtocol>(find_chat(options.chat_template), options.generated_tokens);
}

}  // namespace lancet
