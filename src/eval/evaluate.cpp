#include "lancet/eval/evaluate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "ask_model.h"
#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/strings.h"
#include "lancet/eval/metrics.h"
#include "lancet/models/finite.h"
#include "lancet/runtime/communicator.h"

namespace lancet {
namespace {

/// Describes a model that answers with NaN or infinity, and says what to do.
NumericError no_answer(const CausalLM& model, const std::string& what, const Evaluation* before) {
  return not_finite(model, what,
                    before == nullptr ? wider_dtype(model)
                                      : "The edit drove the model out of range: lower the rate (editor.lr, "
                                        "editor.values.lr), or hold its changes back more (covariance_weight, ridge)");
}

double probability(const TargetAnswer& answer) {
  return std::exp(-answer.nll * static_cast<double>(answer.argmax.size()));
}

void check_metrics(const Tallies& totals, const CausalLM& model, const std::string& stage, const Evaluation* before) {
  for (const auto& [name, tally] : totals)
    if (const std::optional<double> mean = tally.mean(); mean && !std::isfinite(*mean))
      throw no_answer(model, cat(stage, ": ", name, " is ", *mean), before);
}

}  // namespace

struct EvaluationPlan::QuestionSet {
  std::vector<std::unique_ptr<Protocol>> protocols;
  ModelQuestions questions;
  std::vector<std::string> ids;  ///< ids of the requests
  std::vector<MetricRow> metrics;
  std::optional<SideEffectPlan> side_effects;

  std::shared_ptr<AnswerJudge> judge() const {
    for (const std::unique_ptr<Protocol>& protocol : protocols)
      if (std::shared_ptr<AnswerJudge> found = protocol->judge_of_answers()) return found;
    return nullptr;
  }
};

EvaluationPlan::EvaluationPlan(const Tokenizer& tokenizer, std::span<const EditRequest> requests,
                               const EvaluationOptions& options, int64_t max_positions)
    : tokenizer_(tokenizer), requests_(requests.size()) {
  std::iota(requests_.begin(), requests_.end(), 0);
  auto set = std::make_shared<QuestionSet>();
  for (const std::string& name : options.protocols)
    for (const ProtocolRow& row : protocol_table())
      if (row.name == name) set->protocols.push_back(row.make(options));
  for (const std::unique_ptr<Protocol>& protocol : set->protocols) protocol->see(requests);
  std::vector<std::string> problems;
  TextLimit limit(max_positions);
  std::vector<ContentHash> keys(set->protocols.size());
  for (const EditRequest& request : requests) {
    set->questions.begin_request();
    set->ids.push_back(request.id);
    QuestionCollector collector(tokenizer, set->questions, limit, cat("request ", request.id));
    for (size_t i = 0; i < keys.size(); ++i) {
      try {
        set->protocols[i]->ask(request, collector);
        keys[i].add(set->questions.take_key());
      } catch (const Error& error) {
        problems.emplace_back(error.what());
      }
    }
  }
  if (!problems.empty()) throw ConfigError(join(problems, "\n"));
  limit.refuse();
  for (size_t i = 0; i < keys.size(); ++i)
    for (MetricRow& row : set->protocols[i]->metrics()) {
      row.asked = keys[i].hex();
      set->metrics.push_back(std::move(row));
    }
  if (!options.side_effects.empty())
    set->side_effects.emplace(tokenizer, options.side_effects, requests, options.generated_tokens, max_positions);
  set_ = std::move(set);
}

EvaluationPlan EvaluationPlan::scores_of(std::span<const int64_t> requests) const {
  std::vector<size_t> some;
  for (const int64_t index : requests) some.push_back(requests_[static_cast<size_t>(index)]);
  return {set_, tokenizer_, std::move(some)};
}

QuestionPart EvaluationPlan::question_part() const {
  if (!is_part_) return QuestionPart::all(set_->questions);
  std::vector<size_t> some;
  for (const size_t request : requests_)
    for (const size_t index : set_->questions.continuations_of(request)) some.push_back(index);
  std::sort(some.begin(), some.end());
  some.erase(std::unique(some.begin(), some.end()), some.end());
  return {std::move(some), {}};
}

int64_t EvaluationPlan::scored_tokens(size_t request) const {
  int64_t tokens = 0;
  for (const size_t index : set_->questions.continuations_of(request)) {
    const Continuation& continuation = set_->questions.continuations()[index];
    tokens += static_cast<int64_t>(continuation.prompt.size() + continuation.target.size()) - 1;
  }
  return tokens;
}

EvaluationSize EvaluationPlan::size() const {
  const EvaluationSize size = size_of(set_->questions, question_part());
  return set_->side_effects && !is_part_ ? size + set_->side_effects->size() : size;
}

void EvaluationPlan::check_answers(const ModelAnswers& answers, const CausalLM& model, const std::string& stage,
                                   const Evaluation* before) const {
  for (const size_t request : requests_)
    for (const size_t index : set_->questions.continuations_of(request))
      if (const auto& score = answers.scores[index]; score && !std::isfinite(score->nll))
        throw no_answer(model, cat(stage, ": request ", set_->ids[request], ": log p of a target is ", -score->nll),
                        before);
}

/// Collective. Root asks the judge, and all ranks get the verdicts. Only texts that were generated this time are
/// judged.
void EvaluationPlan::ask_judge(ModelAnswers& answers, Communicator& communicator) const {
  const std::vector<JudgeQuestion>& questions = set_->questions.judged();
  if (questions.empty()) return;
  answers.verdicts.assign(questions.size(), std::nullopt);
  std::vector<size_t> places;
  std::vector<JudgedAnswer> judged;
  for (size_t i = 0; i < questions.size(); ++i) {
    const std::optional<GeneratedText>& text = answers.texts[questions[i].text];
    if (!text) continue;
    places.push_back(i);
    judged.push_back(questions[i].about);
    judged.back().answer = text->continuation;
  }
  if (places.empty()) return;
  std::vector<int64_t> verdicts;
  communicator.run_collectively("judge", [&] {
    if (communicator.is_root())
      for (const JudgeVerdict verdict : set_->judge()->judge(judged)) verdicts.push_back(static_cast<int64_t>(verdict));
  });
  verdicts = broadcast_numbers(communicator, verdicts);
  for (size_t i = 0; i < places.size(); ++i) answers.verdicts[places[i]] = static_cast<JudgeVerdict>(verdicts[i]);
}

const ModelQuestions& EvaluationPlan::questions() const { return set_->questions; }

Evaluation EvaluationPlan::judged(ModelAnswers asked, const ModelAnswers* before) const {
  Evaluation evaluation;
  evaluation.answers = std::move(asked);
  const ModelAnswers& answers = evaluation.answers;
  evaluation.metrics = set_->metrics;
  for (const size_t request : requests_) {
    Tallies& tallies = evaluation.requests.emplace_back();
    for (const MetricRow& row : set_->metrics) tallies[row.name];
    std::optional<size_t> shown, target;
    std::vector<SubjectAnswer> about_subject;
    for (const std::unique_ptr<Protocol>& protocol : set_->protocols) {
      for (const auto& [name, tally] : protocol->judge(request, answers, before != nullptr ? *before : answers))
        tallies[name] = tally;
      if (!shown) shown = protocol->shown_text(request);
      if (!target) target = protocol->target_score(request);
      if (about_subject.empty()) about_subject = protocol->subject_answers(request, answers);
    }
    if (target) evaluation.target_probabilities.push_back(probability(*answers.scores[*target]));
    if (shown && answers.texts[*shown]) evaluation.continuations.push_back(answers.texts[*shown]->continuation);
    evaluation.subject_answers.push_back(std::move(about_subject));
  }
  if (std::ranges::all_of(evaluation.subject_answers, &std::vector<SubjectAnswer>::empty))
    evaluation.subject_answers.clear();
  evaluation.totals = pooled(evaluation.requests);
  for (const std::unique_ptr<Protocol>& protocol : set_->protocols) protocol->conclude(evaluation.totals);
  return evaluation;
}

Evaluation EvaluationPlan::judge(ModelAnswers answers) const {
  ask_judge(answers, alone());
  Evaluation evaluation = judged(std::move(answers), nullptr);
  for (const auto& [name, tally] : evaluation.totals)
    if (const std::optional<double> mean = tally.mean(); mean && !std::isfinite(*mean))
      throw NumericError(
          cat(name, " is ", *mean, ": expected a number: what answered gave log-probabilities that are none"));
  return evaluation;
}

std::optional<double> EvaluationPlan::text_kl(const CausalLM& model, const std::string& stage,
                                              Communicator& communicator, const Evaluation& before) const {
  if (!set_->side_effects) return std::nullopt;
  return set_->side_effects->text_kl(model, stage, communicator, before.side_effects);
}

Evaluation EvaluationPlan::run(const CausalLM& model, const std::string& stage, Communicator& communicator,
                               const Evaluation* before) const {
  ModelAnswers answers = ask_model(set_->questions, question_part(), {model, tokenizer_, stage}, communicator);
  check_answers(answers, model, stage, before);
  ask_judge(answers, communicator);
  Evaluation evaluation = judged(std::move(answers), before != nullptr ? &before->answers : nullptr);
  if (set_->side_effects && !is_part_)
    evaluation.side_effects = set_->side_effects->run(model, stage + " side effects", communicator,
                                                      before != nullptr ? &before->side_effects : nullptr);
  check_metrics(evaluation.totals, model, stage, before);
  check_metrics(evaluation.side_effects.totals, model, stage, before);
  return evaluation;
}

namespace {

constexpr size_t kDraws = 1000;
constexpr double kTail = 0.025;  // probability of each of the two tails
// with fewer requests the interval says little: two right answers give 100 to 100 %
constexpr size_t kLeastRequests = 10;

/// Returns for each draw how often it has each request.
std::vector<std::vector<int>> draw_requests(size_t n_requests) {
  std::mt19937_64 random(0);  // gives the same numbers everywhere, unlike the distributions of the standard library
  std::vector<std::vector<int>> draws(kDraws, std::vector<int>(n_requests));
  for (std::vector<int>& draw : draws)
    for (size_t i = 0; i < n_requests; ++i) ++draw[random() % n_requests];
  return draws;
}

double quantile(std::vector<double>& values, double share) {
  const auto place = values.begin() + std::lround(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

}  // namespace

std::string_view unit_name(Unit unit) {
  constexpr std::array<std::string_view, 7> kNames{"share",  "difference", "bits",  "nats",
                                                   "cosine", "perplexity", "number"};
  return kNames[static_cast<size_t>(unit)];
}

std::string_view better_name(Better better) {
  constexpr std::array<std::string_view, 3> kNames{"higher", "lower", "none"};
  return kNames[static_cast<size_t>(better)];
}

Tallies pooled(std::span<const Tallies> requests) {
  Tallies all;
  for (const Tallies& request : requests) {
    for (const auto& [name, tally] : request) {
      all[name].sum += tally.sum;
      all[name].count += tally.count;
    }
  }
  return all;
}

std::map<std::string, double> means_of(const Tallies& tallies) {
  std::map<std::string, double> means;
  for (const auto& [name, tally] : tallies)
    if (const std::optional<double> mean = tally.mean()) means[name] = *mean;
  return means;
}

std::map<std::string, Interval, std::less<>> bootstrap_intervals(std::span<const Tallies> requests) {
  std::map<std::string, std::vector<Tally>, std::less<>> by_metric;
  for (size_t i = 0; i < requests.size(); ++i)
    for (const auto& [name, tally] : requests[i]) by_metric.try_emplace(name, requests.size()).first->second[i] = tally;
  const std::vector<std::vector<int>> draws = draw_requests(requests.size());
  std::map<std::string, Interval, std::less<>> intervals;
  for (const auto& [name, tallies] : by_metric) {
    const auto has_outcomes = [](const Tally& tally) { return tally.count > 0; };
    if (static_cast<size_t>(std::count_if(tallies.begin(), tallies.end(), has_outcomes)) < kLeastRequests) continue;
    std::vector<double> means;
    for (const std::vector<int>& draw : draws) {
      double sum = 0, count = 0;
      for (size_t i = 0; i < tallies.size(); ++i) {
        sum += draw[i] * tallies[i].sum;
        count += static_cast<double>(draw[i] * tallies[i].count);
      }
      if (count > 0) means.push_back(sum / count);
    }
    intervals[name] = {quantile(means, kTail), quantile(means, 1 - kTail)};
  }
  return intervals;
}

}  // namespace lancet
