// What editing cost, besides what it did to its own requests: held-out text, facts that were not edited, multiple
// choice. Asked for under `evaluate.side_effects` of a job.
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

/// A question with answers of which one is right.
struct ChoiceItem {
  std::string question;
  std::vector<std::string> choices;  ///< two or more
  size_t answer = 0;
};

/// Reads .jsonl: {"question": text, "choices": [texts], "answer": index from 0, or the right one's text}.
/// Throws: ConfigError "file: line 3: field: ..." for every bad line at once (first 20 shown).
std::vector<ChoiceItem> load_choices(const std::filesystem::path& path);

struct SideEffectReport {
  std::vector<MetricRow> metrics;  ///< rows in the order in which they are shown
  std::vector<Tallies> items;      ///< outcomes of each document, probe, question, task
  Tallies totals;
  ModelAnswers answers;  ///< what a later report of the same plan is compared with
  HeldOutStates states;  ///< likewise; this rank's
};

/// What is asked, as token ids, made once.
class SideEffectPlan {
 public:
  /// `edited`: a probe with the prompt of one of them is an error. `generated_tokens`: of greedy continuations.
  /// Throws: ConfigError, also for the files and tasks that `options` names, and for texts beyond the model's
  /// positions.
  SideEffectPlan(const Tokenizer& tokenizer, const SideEffectOptions& options, std::span<const EditRequest> edited,
                 int64_t generated_tokens, int64_t max_positions);
  ~SideEffectPlan();

  EvaluationSize size() const;

  /// Collective: mean KL(before || now) on the held-out text; nullopt: there is none. `before`: as of run().
  std::optional<double> text_kl(const CausalLM& model, const std::string& stage, Communicator& communicator,
                                const SideEffectReport& before) const;

  /// Collective: all ranks get the same, but for `states`. `before`: this plan's report on the unedited model; null:
  /// this is that, and the states that KL needs are kept. `model` has that model's final norm and head.
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
