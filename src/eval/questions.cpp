#include "lancet/eval/questions.h"

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/text/prompt.h"

namespace lancet {

void ModelQuestions::begin_request() { of_request_.emplace_back(); }

size_t ModelQuestions::score(Continuation continuation) {
  const auto [place, is_new] =
      place_of_continuation_.try_emplace({continuation.prompt, continuation.target}, continuations_.size());
  if (is_new) continuations_.push_back(std::move(continuation));
  std::vector<size_t>& own = of_request_.back();
  const auto at = std::lower_bound(own.begin(), own.end(), place->second);
  if (at == own.end() || *at != place->second) own.insert(at, place->second);
  return place->second;
}

size_t ModelQuestions::generate(TextQuestion text) {
  const auto [place, is_new] = place_of_text_.try_emplace(text, texts_.size());
  if (is_new) texts_.push_back(std::move(text));
  return place->second;
}

size_t Asker::score(std::string_view prompt, std::string_view target) {
  std::vector<TokenId> ids = tokenizer_.ids(prompt);
  if (ids.empty()) throw ConfigError(cat(where_, ", prompt '", prompt, "': no tokens: expected some text"));
  return questions_.score(
      {std::move(ids), continuation_ids(tokenizer_, prompt, target, cat(where_, ", prompt '", prompt, "'"))});
}

size_t Asker::generate(std::string_view prompt, int64_t max_new_tokens, Decoding decoding) {
  std::vector<TokenId> ids = tokenizer_.ids(prompt);
  if (ids.empty()) throw ConfigError(cat(where_, ", prompt '", prompt, "': no tokens: expected some text"));
  return questions_.generate({std::move(ids), max_new_tokens, decoding});
}

}  // namespace lancet
