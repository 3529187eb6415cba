// Measures side effects of editing: on held-out text, on facts that were not edited, and on multiple choice. The
// section `evaluate.side_effects` of a job asks for them.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/eval/evaluation_size.h"
#include "lancet/eval/held_out_text.h"
#include "lancet/eval/questions.h"
#include "lancet/eval/task_runner.h"
#include "lancet/requests/request.h"
#include "lancet/spec/evaluation_options.h"

namespace lancet {

/// A multiple-choice question with one right answer.
struct ChoiceItem {
  std::string question;
  std::vector<std::string> choices;  ///< two or more
  size_t answer = 0;
};

/// Reads .jsonl: {"question": text, "choices": [texts], "answer": index from 0, or the text of the right one}. Throws:
/// ConfigError "file: line 3: field: ..." for all bad lines at once (the first 20 are shown).
std::vector<ChoiceItem> load_choices(const std::filesystem::path& path);

struct SideEffectReport {
  std::vector<MetricRow> metrics;  ///< metrics in display order
  std::vector<Tallies> items;      ///< outcomes of each document, probe, question and task
  Tallies totals;
  ModelAnswers answers;  ///< a later report of the same plan compares with these
  HeldOutStates states;  ///< this rank's states, for the same purpose
};

/// The questions about side effects, as token ids, made once.
class SideEffectPlan {
 public:
  /// `edited`: a probe with the prompt of one of these is an error. `generated_tokens`: length of greedy continuations.
  /// Throws: ConfigError, also for the files and tasks that `options` names, and for texts beyond the model's
  /// positions.
  SideEffectPlan(const Tokenizer& tokenizer, const SideEffectOptions& options, std::span<const EditRequest> edited,
                 int64_t generated_tokens, int64_t max_positions);
  ~SideEffectPlan();

  EvaluationSize size() const;

  /// Collective. Returns the mean KL(before || now) on the held-out text; nullopt: there is no text. `before`: as in
  /// run().
  std::optional<double> text_kl(const CausalLM& model, const std::string& stage, Communicator& communicator,
                                const SideEffectReport& before) const;

  /// Collective; all ranks get the same result, except `states`. `before`: this plan's report on the unedited model;
  /// null: this run is that one, and the states that KL needs are kept. `model` must have the unedited model's final
  /// norm and head.
  SideEffectReport run(const CausalLM& model, const std::string& stage, Communicator& communicator,
                       const SideEffectReport* before) const;

 private:
  class Probes;
  class Choices;

  void run_tasks(SideEffectReport& report, const AskableModel& model) const;

  const Tokenizer& tokenizer_;
  ModelQuestions questions_;
  TaskOptions tasks_;
  std::shared_ptr<const TaskRunner> task_runner_;  ///< null: no tasks
  std::optional<HeldOutText> text_;
  std::unique_ptr<Probes> probes_;    ///< null: none
  std::unique_ptr<Choices> choices_;  ///< null: none
};

}  // namespace lancet
