// How well requests hold on a model's weights as they are.
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
  std::vector<MetricRow> metrics;  ///< what was measured, in the order in which it is shown
  std::vector<Tallies> requests;
  Tallies totals;                          ///< outcomes over all requests
  std::vector<std::string> continuations;  ///< greedy, per request; empty unless `generation` or `chat` was asked for
  std::vector<std::vector<SubjectAnswer>> subject_answers;  ///< per request; empty unless `subject` was asked for
  std::vector<double>
      target_probabilities;  ///< probability of the whole target, per request; empty unless `efficacy` was asked for
  ModelAnswers answers;      ///< what a later evaluation by the same plan is compared with
  SideEffectReport side_effects;  ///< empty unless `evaluate.side_effects` asks for some, and of parts
};

struct QuestionPart;

/// The requests' texts as ids, made once.
class EvaluationPlan {
 public:
  /// Reads the files that `options.side_effects` names. Throws: ConfigError listing every request with a prompt and
  /// target that do not split into tokens (text/prompt.h), or all texts that with what is scored or generated after
  /// them go beyond the model's positions; and for those files.
  EvaluationPlan(const Tokenizer& tokenizer, std::span<const EditRequest> requests, const EvaluationOptions& options,
                 int64_t max_positions);

  EvaluationSize size() const;

  /// Tokens of the rows that are scored for one request.
  int64_t scored_tokens(size_t request) const;

  /// The scores of some requests alone, in their order, without generation: nothing is tokenised again.
  EvaluationPlan scores_of(std::span<const int64_t> requests) const;

  /// What is asked, for whoever has another program answer it.
  const ModelQuestions& questions() const;
  /// What run() makes of answers, without side effects. Of a plan with protocols that score, all scores are there.
  /// Throws: NumericError when a metric is not finite; ServerError of a judge.
  Evaluation judge(ModelAnswers answers) const;

  /// Collective: all ranks get the same. `stage` is what the progress shows: "evaluate before". `before`: what this
  /// plan, or the one it is a part of, measured on the unedited model; null: this is that.
  /// Throws: NumericError when a score or a metric is not finite; ServerError of a judge (AnswerJudge::judge).
  Evaluation run(const CausalLM& model, const std::string& stage, Communicator& communicator,
                 const Evaluation* before = nullptr) const;

  /// Collective: how far the model has moved on the text of `side_effects`; nullopt: there is none. `before`: as of
  /// run(), on the unedited model.
  std::optional<double> text_kl(const CausalLM& model, const std::string& stage, Communicator& communicator,
                                const Evaluation& before) const;

 private:
  struct QuestionSet;  // what is asked of all requests, and the protocols, which know where

  EvaluationPlan(std::shared_ptr<const QuestionSet> set, const Tokenizer& tokenizer, std::vector<size_t> requests)
      : set_(std::move(set)), tokenizer_(tokenizer), requests_(std::move(requests)), is_part_(true) {}

  QuestionPart question_part() const;
  void ask_judge(ModelAnswers& answers, Communicator& communicator) const;
  Evaluation judged(ModelAnswers answers, const ModelAnswers* before) const;
  void check_answers(const ModelAnswers& answers, const CausalLM& model, const std::string& stage,
                     const Evaluation* before) const;

  std::shared_ptr<const QuestionSet> set_;
  const Tokenizer& tokenizer_;
  std::vector<size_t> requests_;  ///< that are measured
  bool is_part_ = false;          ///< scores alone
};

}  // namespace lancet
