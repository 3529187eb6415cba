#include "lancet/eval/questions.h"

#include <algorithm>
#include <span>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/core/words.h"
#include "lancet/text/prompt.h"

namespace lancet {

namespace {

constexpr size_t kShownBytes = 60;  ///< most bytes of a text that is shown

std::span<const std::byte> bytes_of(const std::vector<TokenId>& ids) { return std::as_bytes(std::span(ids)); }

}  // namespace

void ModelQuestions::begin_request() { of_request_.emplace_back(); }

size_t ModelQuestions::score(Continuation continuation) {
  asked_.add(bytes_of(continuation.prompt)).add(bytes_of(continuation.target));
  const auto [place, is_new] =
      place_of_continuation_.try_emplace({continuation.prompt, continuation.target}, continuations_.size());
  if (is_new) continuations_.push_back(std::move(continuation));
  std::vector<size_t>& own = of_request_.back();
  const auto at = std::lower_bound(own.begin(), own.end(), place->second);
  if (at == own.end() || *at != place->second) own.insert(at, place->second);
  return place->second;
}

size_t ModelQuestions::generate(TextQuestion text) {
  asked_.add(bytes_of(text.prompt)).add(text.max_new_tokens).add(static_cast<int64_t>(text.decoding));
  const auto [place, is_new] = place_of_text_.try_emplace(text, texts_.size());
  if (is_new) texts_.push_back(std::move(text));
  return place->second;
}

size_t ModelQuestions::judge(JudgeQuestion question, std::string_view judge) {
  asked_.add(judge).add(question.about.target);
  for (const std::string& alias : question.about.aliases) asked_.add(alias);
  judged_.push_back(std::move(question));
  return judged_.size() - 1;
}

std::string ModelQuestions::take_key() { return std::exchange(asked_, {}).hex(); }

std::string QuestionCollector::where_of(std::string_view prompt) const {
  return cat(where_, ", prompt '", prompt, "'");
}

std::vector<TokenId> QuestionCollector::some_ids(std::vector<TokenId> ids, std::string_view prompt) const {
  if (ids.empty())
    throw ConfigError(
        cat(where_of(prompt), ": no tokens: expected some text, because this tokenizer puts no BOS before it"));
  return ids;
}

/// Checks the prompt's length. `after`: what follows the prompt, which with it has so many tokens.
void QuestionCollector::check_length(std::string_view prompt, std::string_view after, size_t tokens) {
  const auto count = static_cast<int64_t>(tokens);
  if (!limit_.has_room(count)) limit_.note(cat(where_, ": '", excerpt(prompt, kShownBytes), "' and ", after), count);
}

size_t QuestionCollector::score(std::string_view prompt, std::string_view target) {
  ContinuedPrompt continued = continue_prompt(tokenizer_, prompt, target, where_of(prompt));
  check_length(prompt, cat("'", excerpt(target, kShownBytes), "'"),
               continued.prompt.ids.size() + continued.target.size());
  return questions_.score({some_ids(std::move(continued.prompt.ids), prompt), std::move(continued.target)});
}

size_t QuestionCollector::score_ids(Continuation continuation) {
  const size_t tokens = continuation.prompt.size() + continuation.target.size();
  check_length(tokenizer_.decode(continuation.prompt), "what follows it", tokens);
  return questions_.score(std::move(continuation));
}

size_t QuestionCollector::generate(std::string_view prompt, int64_t max_new_tokens, Decoding decoding) {
  std::vector<TokenId> ids = some_ids(tokenizer_.ids(prompt), prompt);
  check_length(prompt, counted(static_cast<size_t>(max_new_tokens), "new token"),
               ids.size() + static_cast<size_t>(max_new_tokens));
  return questions_.generate({std::move(ids), max_new_tokens, decoding});
}

size_t QuestionCollector::chat(const ChatTemplate& chat, std::string_view message, Thinking thinking,
                               int64_t max_new_tokens) {
  std::vector<TokenId> ids = chat.ids(tokenizer_, message, thinking);
  check_length(message, cat(counted(static_cast<size_t>(max_new_tokens), "new token"), " as a chat"),
               ids.size() + static_cast<size_t>(max_new_tokens));
  return questions_.generate({std::move(ids), max_new_tokens, Decoding::kGreedy, chat.end_ids(tokenizer_)});
}

}  // namespace lancet
