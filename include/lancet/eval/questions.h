// The questions to a model in an evaluation, and its answers. The questions are made once: the measurements before and
// after use the same token ids, and a question of several protocols is run once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "lancet/core/hash.h"
#include "lancet/eval/scoring.h"
#include "lancet/judge/answer_judge.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/text/chat_template.h"

namespace lancet {

enum class Decoding {
  kGreedy,  ///< the most likely tokens, until EOS
  kTopK5    ///< sampled from the five most likely tokens, not ended by EOS: generation of the CounterFact protocol
};

struct TextQuestion {
  std::vector<TokenId> prompt;
  int64_t max_new_tokens = 0;
  Decoding decoding = Decoding::kGreedy;
  std::vector<TokenId> end_ids = {};  ///< ids that end a greedy continuation, besides the model's EOS

  auto operator<=>(const TextQuestion&) const = default;
};

struct GeneratedText {
  std::string whole;         ///< text with the prompt
  std::string continuation;  ///< text without the prompt, and without the space between them
  bool has_ended = false;    ///< whether an end token ended it, not the limit
};

/// The score of a continuation, compared with the target.
struct TargetAnswer {
  double nll = 0;               ///< mean over the target's tokens of -log p(token | prompt, target before it)
  std::vector<TokenId> argmax;  ///< the most likely token at each place of the target
  int64_t n_right = 0;          ///< number of places where this is the target's token

  bool is_right() const { return n_right == static_cast<int64_t>(argmax.size()); }
  double share_right() const { return static_cast<double>(n_right) / static_cast<double>(argmax.size()); }
};

/// A question to a judge about a text that the model wrote.
struct JudgeQuestion {
  size_t text = 0;     ///< index of the text that is judged
  JudgedAnswer about;  ///< what the text should state; the answer itself is not filled in yet
};

/// The answers to all questions. A question that was not asked this time has none (a part of the requests, scores
/// alone).
struct ModelAnswers {
  std::vector<std::optional<TargetAnswer>> scores;
  std::vector<std::optional<GeneratedText>> texts;
  std::vector<std::optional<JudgeVerdict>> verdicts = {};
};

/// The questions of all requests. Equal questions are stored once.
class ModelQuestions {
 public:
  /// Begins a request: the following questions belong to it.
  void begin_request();
  /// Adds a question and returns the index of its answer in ModelAnswers::scores.
  size_t score(Continuation continuation);
  /// Adds a question and returns the index of its answer in ModelAnswers::texts.
  size_t generate(TextQuestion text);
  /// Adds a question and returns the index of its answer in ModelAnswers::verdicts. `judge`: who judges.
  size_t judge(JudgeQuestion question, std::string_view judge);

  /// Returns a key of all questions since the last call, from their token ids. Equal keys mean equal questions.
  std::string take_key();

  const std::vector<Continuation>& continuations() const { return continuations_; }
  const std::vector<TextQuestion>& texts() const { return texts_; }
  const std::vector<JudgeQuestion>& judged() const { return judged_; }
  /// Returns the indices of the continuations that the request asks for, ascending.
  const std::vector<size_t>& continuations_of(size_t request) const { return of_request_[request]; }

 private:
  std::vector<Continuation> continuations_;
  std::vector<TextQuestion> texts_;
  std::vector<JudgeQuestion> judged_;
  std::vector<std::vector<size_t>> of_request_;
  std::map<std::pair<std::vector<TokenId>, std::vector<TokenId>>, size_t> place_of_continuation_;
  std::map<TextQuestion, size_t> place_of_text_;
  ContentHash asked_;
};

/// Adds the questions of one request, given as text. Records in `limit` what is too long for the model.
class QuestionCollector {
 public:
  /// All arguments must outlive the collector.
  QuestionCollector(const Tokenizer& tokenizer, ModelQuestions& questions, TextLimit& limit, std::string where)
      : tokenizer_(tokenizer), questions_(questions), limit_(limit), where_(std::move(where)) {}

  /// Scores `target` as a continuation of `prompt` (continue_prompt). Throws: ConfigError that names the request.
  size_t score(std::string_view prompt, std::string_view target);
  size_t score_ids(Continuation continuation);
  size_t generate(std::string_view prompt, int64_t max_new_tokens, Decoding decoding = Decoding::kGreedy);
  /// Asks for the greedy answer to `message` as a user's message.
  size_t chat(const ChatTemplate& chat, std::string_view message, Thinking thinking, int64_t max_new_tokens);

  size_t judge(JudgeQuestion question, std::string_view judge) { return questions_.judge(std::move(question), judge); }

  /// Returns whether a text of so many tokens fits the model. If not, callers leave out optional questions.
  bool has_room(size_t tokens) const { return limit_.has_room(static_cast<int64_t>(tokens)); }

  const Tokenizer& tokenizer() const { return tokenizer_; }
  const std::string& where() const { return where_; }

 private:
  std::string where_of(std::string_view prompt) const;
  std::vector<TokenId> some_ids(std::vector<TokenId> ids, std::string_view prompt) const;
  void check_length(std::string_view prompt, std::string_view after, size_t tokens);

  const Tokenizer& tokenizer_;
  ModelQuestions& questions_;
  TextLimit& limit_;
  std::string where_;  ///< "request 17"
};

}  // namespace lancet
