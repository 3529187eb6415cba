#include "lancet/eval/evaluate.h"

#include <algorithm>
#include <numeric>

#include "answer_texts.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {

namespace {

TargetAnswer to_answer(const Continuation& continuation, ContinuationScore score) {
  TargetAnswer answer{score.nll, std::move(score.argmax)};
  for (size_t i = 0; i < continuation.target.size(); ++i)
    if (answer.argmax[i] == continuation.target[i]) ++answer.n_right;
  return answer;
}

}  // namespace

struct EvaluationPlan::Asked {
  std::vector<std::unique_ptr<Protocol>> protocols;
  ModelQuestions questions;
  std::vector<MetricRow> metrics;
};

EvaluationPlan::EvaluationPlan(const Tokenizer& tokenizer, std::span<const EditRequest> requests,
                               const EvaluationOptions& options)
    : tokenizer_(tokenizer), requests_(requests.size()) {
  std::iota(requests_.begin(), requests_.end(), 0);
  auto asked = std::make_shared<Asked>();
  for (const std::string& name : options.protocols)
    for (const ProtocolRow& row : protocol_table())
      if (row.name == name) asked->protocols.push_back(row.make(options));
  std::vector<std::string> problems;
  for (const EditRequest& request : requests) {
    asked->questions.begin_request();
    Asker asker(tokenizer, asked->questions, cat("request ", request.id));
    for (const std::unique_ptr<Protocol>& protocol : asked->protocols) {
      try {
        protocol->ask(request, asker);
      } catch (const Error& error) {
        problems.emplace_back(error.what());
      }
    }
  }
  if (!problems.empty()) throw ConfigError(join(problems, "\n"));
  for (const std::unique_ptr<Protocol>& protocol : asked->protocols)
    for (MetricRow& row : protocol->metrics()) asked->metrics.push_back(std::move(row));
  asked_ = std::move(asked);
}

EvaluationPlan EvaluationPlan::scores_of(std::span<const int64_t> requests) const {
  std::vector<size_t> some;
  for (const int64_t index : requests) some.push_back(requests_[static_cast<size_t>(index)]);
  return {asked_, tokenizer_, std::move(some)};
}

std::vector<size_t> EvaluationPlan::asked_continuations() const {
  std::vector<size_t> some;
  for (const size_t request : requests_)
    for (const size_t index : asked_->questions.continuations_of(request)) some.push_back(index);
  std::sort(some.begin(), some.end());
  some.erase(std::unique(some.begin(), some.end()), some.end());
  return some;
}

int64_t EvaluationPlan::scored_tokens(size_t request) const {
  int64_t tokens = 0;
  for (const size_t index : asked_->questions.continuations_of(request)) {
    const Continuation& continuation = asked_->questions.continuations()[index];
    tokens += static_cast<int64_t>(continuation.prompt.size() + continuation.target.size()) - 1;
  }
  return tokens;
}

EvaluationSize EvaluationPlan::size() const {
  EvaluationSize size;
  const std::vector<size_t> asked = asked_continuations();
  for (const size_t index : asked) {
    const Continuation& continuation = asked_->questions.continuations()[index];
    const auto target = static_cast<int64_t>(continuation.target.size());
    size.scored_row_tokens =
        std::max(size.scored_row_tokens, static_cast<int64_t>(continuation.prompt.size()) + target - 1);
    size.labels += target;
  }
  size.scored_tokens = size.scored_row_tokens * static_cast<int64_t>(asked.size());
  if (is_part_) return size;
  for (const TextQuestion& text : asked_->questions.texts()) {
    const auto prompt = static_cast<int64_t>(text.prompt.size());
    ++size.generation.rows;
    size.generation.prompt_tokens = std::max(size.generation.prompt_tokens, prompt);
    size.generation.row_tokens = std::max(size.generation.row_tokens, prompt + text.max_new_tokens);
  }
  return size;
}

Evaluation EvaluationPlan::run(const CausalLM& model, const std::string& stage, Communicator& communicator,
                               const Evaluation* before) const {
  const ModelQuestions& questions = asked_->questions;
  Evaluation evaluation;
  ModelAnswers& answers = evaluation.answers;
  answers.scores.resize(questions.continuations().size());
  answers.texts.resize(questions.texts().size());
  if (const std::vector<size_t> asked = asked_continuations(); !asked.empty()) {
    std::vector<Continuation> continuations;
    for (const size_t index : asked) continuations.push_back(questions.continuations()[index]);
    std::vector<ContinuationScore> scores = score_continuations(model, continuations, stage, communicator);
    for (size_t i = 0; i < asked.size(); ++i)
      answers.scores[asked[i]] = to_answer(continuations[i], std::move(scores[i]));
  }
  if (!is_part_) answer_texts(questions.texts(), {model, tokenizer_, stage}, communicator, answers.texts);

  evaluation.metrics = asked_->metrics;
  for (const size_t request : requests_) {
    Tallies& tallies = evaluation.requests.emplace_back();
    for (const MetricRow& row : asked_->metrics) tallies[row.name];
    for (const std::unique_ptr<Protocol>& protocol : asked_->protocols) {
      for (const auto& [name, tally] : protocol->judge(request, answers, before != nullptr ? before->answers : answers))
        tallies[name] = tally;
      if (const std::optional<size_t> text = protocol->shown_text(request); text && answers.texts[*text])
        evaluation.continuations.push_back(answers.texts[*text]->continuation);
    }
  }
  evaluation.totals = pooled(evaluation.requests);
  for (const std::unique_ptr<Protocol>& protocol : asked_->protocols) protocol->conclude(evaluation.totals);
  return evaluation;
}

}  // namespace lancet
