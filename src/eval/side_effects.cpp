#include "lancet/eval/side_effects.h"

#include <algorithm>
#include <set>

#include "ask_model.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/batching.h"
#include "lancet/text_metrics/answer_match.h"

namespace lancet {
namespace {

constexpr size_t kShownDifferences = 5;

/// Refuses probes that are edited: they would measure the edit, not its side effects.
void check_probes(std::span<const EditRequest> probes, std::span<const EditRequest> edited) {
  std::set<std::string_view> prompts;
  for (const EditRequest& request : edited) prompts.insert(request.prompt.text);
  std::vector<std::string> both;
  for (const EditRequest& probe : probes)
    if (prompts.contains(probe.prompt.text)) both.push_back(cat(probe.id, " (", probe.prompt.text, ")"));
  if (both.empty()) return;
  const size_t shown = std::min(both.size(), kShownDifferences);
  throw ConfigError(cat("evaluate.side_effects.probes: ", both.size(),
                        " of them are edited by this job: ", join(std::span(both).first(shown), "; "),
                        shown < both.size() ? "; ..." : "", ". Choose other facts (skip, limit)"));
}

}  // namespace

/// Measures whether the model still gives the answers of facts that are not edited.
class SideEffectPlan::Probes {
 public:
  Probes(std::span<const EditRequest> probes, int64_t tokens, const Tokenizer& tokenizer, ModelQuestions& questions,
         TextLimit& limit)
      : tokens_(tokens) {
    for (const EditRequest& probe : probes) {
      questions.begin_request();
      QuestionCollector collector(tokenizer, questions, limit, cat("evaluate.side_effects.probes: fact ", probe.id));
      scores_.push_back(collector.score(probe.prompt.text, probe.target_true.value_or(probe.target)));
      texts_.push_back(collector.generate(probe.prompt.text, tokens));
    }
  }

  size_t count() const { return scores_.size(); }

  std::vector<MetricRow> metrics() const {
    const std::string of = cat(" of ", count(), " facts that are not edited");
    return {
        {"probe_argmax", "probes",
         "share" + of + " whose true answer is the likeliest, token by token (teacher-forced)"},
        {"probe_kept", "probes", "of the facts that the unedited model answers so, the share that it still does"},
        {"probe_logprob_change", "probes", "mean change of log p of the true answer (mean over its tokens)," + of,
         Unit::kNats, Better::kNeither},
        {"probe_text_kept", "probes",
         cat("share", of, " whose greedy continuation (", tokens_, " tokens) is the unedited model's to the letter")}};
  }

  Tallies judge(size_t probe, const ModelAnswers& now, const ModelAnswers& before) const {
    const TargetAnswer& answer = *now.scores[scores_[probe]];
    const TargetAnswer& old = *before.scores[scores_[probe]];
    const size_t text = texts_[probe];
    Tallies tallies;
    tallies["probe_argmax"].add(answer.is_right() ? 1 : 0);
    if (old.is_right()) tallies["probe_kept"].add(answer.is_right() ? 1 : 0);
    tallies["probe_logprob_change"].add(old.nll - answer.nll);
    tallies["probe_text_kept"].add(now.texts[text]->continuation == before.texts[text]->continuation ? 1 : 0);
    return tallies;
  }

 private:
  int64_t tokens_;
  std::vector<size_t> scores_, texts_;  ///< one for each probe
};

/// Measures multiple-choice questions.
class SideEffectPlan::Choices {
 public:
  Choices(std::vector<ChoiceItem> items, int64_t tokens, const Tokenizer& tokenizer, ModelQuestions& questions,
          TextLimit& limit)
      : tokens_(tokens) {
    for (ChoiceItem& item : items) {
      questions.begin_request();
      QuestionCollector collector(tokenizer, questions, limit,
                                  cat("evaluate.side_effects.choices: question ", questions_.size()));
      Question& question = questions_.emplace_back();
      for (const std::string& choice : item.choices) question.scores.push_back(collector.score(item.question, choice));
      question.text = collector.generate(item.question, tokens);
      question.item = std::move(item);
    }
  }

  size_t count() const { return questions_.size(); }

  std::vector<MetricRow> metrics() const {
    const std::string of = cat("share of ", count(), " questions ");
    return {{"choice_accuracy", "choices",
             of + "whose right answer is the likeliest of its choices (log p, mean over tokens)"},
            {"choice_generated_accuracy", "choices",
             cat(of, "whose greedy continuation (", tokens_, " tokens) contains the right answer and no other choice")},
            {"choice_invalid", "choices", of + "whose continuation contains no choice, or several", Unit::kShare,
             Better::kLower}};
  }

  Tallies judge(size_t index, const ModelAnswers& now) const {
    const Question& question = questions_[index];
    const auto nll = [&](size_t choice) { return now.scores[question.scores[choice]]->nll; };
    size_t likeliest = 0;
    std::vector<size_t> written;
    for (size_t i = 0; i < question.item.choices.size(); ++i) {
      if (nll(i) < nll(likeliest)) likeliest = i;
      if (contains(now.texts[question.text]->continuation, std::span(&question.item.choices[i], 1)))
        written.push_back(i);
    }
    const bool is_valid = written.size() == 1;
    Tallies tallies;
    tallies["choice_accuracy"].add(likeliest == question.item.answer ? 1 : 0);
    tallies["choice_generated_accuracy"].add(is_valid && written.front() == question.item.answer ? 1 : 0);
    tallies["choice_invalid"].add(is_valid ? 0 : 1);
    return tallies;
  }

 private:
  struct Question {
    ChoiceItem item;
    std::vector<size_t> scores;  ///< one for each choice
    size_t text = 0;
  };
  int64_t tokens_;
  std::vector<Question> questions_;
};

SideEffectPlan::SideEffectPlan(const Tokenizer& tokenizer, const SideEffectOptions& options,
                               std::span<const EditRequest> edited, int64_t generated_tokens, int64_t max_positions)
    : tokenizer_(tokenizer) {
  if (!options.tasks.tasks.empty()) {
    if (!options.task_runner)
      throw ConfigError(
          "evaluate.lm_eval: lm-evaluation-harness runs in Python: install lancet's Python package and lm_eval, then "
          "run the job by lancet.run(\"job.yaml\") (docs/python.md), or leave lm_eval out");
    tasks_ = options.tasks;
    task_runner_ = options.task_runner;
    task_runner_->check(tasks_);
  }
  if (options.text) text_.emplace(tokenizer, *options.text, max_positions);
  TextLimit limit(max_positions);
  if (options.probes) {
    const ProbeOptions& file = *options.probes;
    const std::vector<EditRequest> probes =
        load_request_file(file.path, {.range = {file.skip, file.limit}, .format = file.format}).requests;
    check_probes(probes, edited);
    probes_ = std::make_unique<Probes>(probes, generated_tokens, tokenizer, questions_, limit);
  }
  if (!options.choices.empty())
    choices_ = std::make_unique<Choices>(load_choices(options.choices), generated_tokens, tokenizer, questions_, limit);
  limit.refuse();
}

SideEffectPlan::~SideEffectPlan() = default;

EvaluationSize SideEffectPlan::size() const {
  EvaluationSize size = size_of(questions_, QuestionPart::all(questions_));
  if (!text_) return size;
  const int64_t tokens = text_->predicted_tokens();
  EvaluationSize text;
  text.scoring = ScoringSize::of_whole_documents(tokens, text_->longest_document(), 2 * tokens);
  text.kept_states = tokens;
  return size + text;
}

std::optional<double> SideEffectPlan::text_kl(const CausalLM& model, const std::string& stage,
                                              Communicator& communicator, const SideEffectReport& before) const {
  if (!text_) return std::nullopt;
  return pooled(text_->measure(model, stage, communicator, &before.states, nullptr)).at("text_kl").mean();
}

SideEffectReport SideEffectPlan::run(const CausalLM& model, const std::string& stage, Communicator& communicator,
                                     const SideEffectReport* before) const {
  SideEffectReport report;
  if (text_) {
    report.metrics = text_->metrics();
    report.items = text_->measure(model, stage, communicator, before != nullptr ? &before->states : nullptr,
                                  before != nullptr ? nullptr : &report.states);
  }
  report.answers = ask_model(questions_, QuestionPart::all(questions_), {model, tokenizer_, stage}, communicator);
  const ModelAnswers& old = before != nullptr ? before->answers : report.answers;
  const auto add = [&](const std::vector<MetricRow>& rows) {
    report.metrics.insert(report.metrics.end(), rows.begin(), rows.end());
  };
  if (probes_) {
    add(probes_->metrics());
    for (size_t i = 0; i < probes_->count(); ++i) report.items.push_back(probes_->judge(i, report.answers, old));
  }
  if (choices_) {
    add(choices_->metrics());
    for (size_t i = 0; i < choices_->count(); ++i) report.items.push_back(choices_->judge(i, report.answers));
  }
  if (task_runner_) run_tasks(report, {model, tokenizer_, communicator});
  report.totals = pooled(report.items);
  if (text_) HeldOutText::conclude(report.totals);
  for (const MetricRow& row : report.metrics) report.totals[row.name];
  return report;
}

/// The tasks give a mean and a number of questions. It is stored as that many outcomes, which all have the mean as
/// their value.
void SideEffectPlan::run_tasks(SideEffectReport& report, const AskableModel& model) const {
  const std::string with = tasks_.shots ? cat(", ", *tasks_.shots, " examples before each question") : "";
  for (const TaskScore& score : task_runner_->run(model, tasks_)) {
    const std::string name = cat("lm_eval.", score.task, ".", score.metric);
    report.metrics.push_back({name, "lm_eval",
                              cat(score.metric, " of the task ", score.task, " of lm-evaluation-harness, ",
                                  score.questions, " questions", with),
                              score.unit, score.better});
    report.items.emplace_back()[name] = {score.value * static_cast<double>(score.questions), score.questions};
  }
}

}  // namespace lancet
