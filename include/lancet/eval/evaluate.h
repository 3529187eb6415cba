// Measures how well requests hold on a model's current weights.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/eval/evaluation_size.h"
#include "lancet/eval/protocol.h"
#include "lancet/eval/side_effects.h"
#include "lancet/models/causal_lm.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

struct Evaluation {
  std::vector<MetricRow> metrics;  ///< the metrics that were measured, in display order
  std::vector<Tallies> requests;
  Tallies totals;                          ///< outcomes over all requests
  std::vector<std::string> continuations;  ///< greedy, per request; empty unless `generation` or `chat` was asked for
  std::vector<std::vector<SubjectAnswer>> subject_answers;  ///< per request; empty unless `subject` was asked for
  /// Probability of the whole target, per request; empty unless `efficacy` was asked for.
  std::vector<double> target_probabilities;
  ModelAnswers answers;  ///< a later evaluation by the same plan compares with these
  /// Empty unless `evaluate.side_effects` asks for some; empty for a plan of some requests.
  SideEffectReport side_effects;
};

struct QuestionPart;

/// The texts of requests as token ids, which are made once.
class EvaluationPlan {
 public:
  /// Reads the files that `options.side_effects` names. Throws: ConfigError that lists every request whose prompt and
  /// target do not split into tokens (text/prompt.h), or all texts that exceed the model's positions together with what
  /// is scored or generated after them; and for those files.
  EvaluationPlan(const Tokenizer& tokenizer, std::span<const EditRequest> requests, const EvaluationOptions& options,
                 int64_t max_positions);

  EvaluationSize size() const;

  /// Returns the number of tokens of the rows that are scored for one request.
  int64_t scored_tokens(size_t request) const;

  /// Returns a plan of scores alone, without generation, for some requests in their order. Nothing is tokenised again.
  EvaluationPlan scores_of(std::span<const int64_t> requests) const;

  /// Returns the questions, so that another program can answer them.
  const ModelQuestions& questions() const;
  /// Returns what run() makes of answers, without side effects. If the plan has protocols that score, `answers` must
  /// have all scores. Throws: NumericError if a metric is not finite; ServerError of a judge.
  Evaluation judge(ModelAnswers answers) const;

  /// Collective; all ranks get the same result. `stage` is shown in the progress: "evaluate before". `before`: the
  /// result of this plan, or of the plan of which it is a part, on the unedited model; null: this run is that one.
  /// Throws: NumericError if a score or a metric is not finite; ServerError of a judge (AnswerJudge::judge).
  Evaluation run(const CausalLM& model, const std::string& stage, Communicator& communicator,
                 const Evaluation* before = nullptr) const;

  /// Collective. Returns the KL divergence of the model from the unedited one on the text of `side_effects`; nullopt:
  /// there is no text. `before`: the result of run() on the unedited model.
  std::optional<double> text_kl(const CausalLM& model, const std::string& stage, Communicator& communicator,
                                const Evaluation& before) const;

 private:
  struct QuestionSet;  // the questions of all requests, and the protocols, which know their indices

  EvaluationPlan(std::shared_ptr<const QuestionSet> set, const Tokenizer& tokenizer, std::vector<size_t> requests)
      : set_(std::move(set)), tokenizer_(tokenizer), requests_(std::move(requests)), is_part_(true) {}

  QuestionPart question_part() const;
  void ask_judge(ModelAnswers& answers, Communicator& communicator) const;
  Evaluation judged(ModelAnswers answers, const ModelAnswers* before) const;
  void check_answers(const ModelAnswers& answers, const CausalLM& model, const std::string& stage,
                     const Evaluation* before) const;

  std::shared_ptr<const QuestionSet> set_;
  const Tokenizer& tokenizer_;
  std::vector<size_t> requests_;  ///< requests that are measured
  bool is_part_ = false;          ///< whether it has scores alone
};

}  // namespace lancet
