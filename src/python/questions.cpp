#include "questions.h"

#include <algorithm>

namespace lancet::python {

std::vector<std::pair<double, bool>> score(const AskableModel& model, std::vector<std::pair<Ids, Ids>> pairs) {
  std::vector<Continuation> continuations;
  for (auto& [prompt, target] : pairs) continuations.push_back({std::move(prompt), std::move(target)});
  std::vector<std::pair<double, bool>> answers;
  const std::vector<ContinuationScore> scores = model.score(continuations);
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto length = static_cast<double>(continuations[i].target.size());
    answers.emplace_back(-scores[i].nll * length, scores[i].argmax == continuations[i].target);
  }
  return answers;
}

std::vector<Ids> continue_greedily(const AskableModel& model, std::vector<std::pair<Ids, int64_t>> prompts,
                                   const std::vector<std::string>& stops) {
  std::vector<GenerateRow> rows;
  for (auto& [prompt, most] : prompts) rows.push_back({std::move(prompt), most});
  size_t longest = 0;
  for (const std::string& stop : stops) longest = std::max(longest, stop.size());
  // a token has at least one byte of text, except special tokens, and the tail's first token may lose its space
  const size_t tail_tokens = longest + 8;
  const auto ends = [&](int64_t, std::span<const TokenId> added) {
    const std::string tail = model.tokenizer().decode(added.last(std::min(added.size(), tail_tokens)));
    return std::ranges::any_of(
        stops, [&](const std::string& stop) { return !stop.empty() && tail.find(stop) != std::string::npos; });
  };
  return model.generate(rows, model.config().eos_ids, stops.empty() ? AskableModel::RowEnds() : ends);
}

}  // namespace lancet::python
