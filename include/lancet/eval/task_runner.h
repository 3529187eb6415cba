// Runs tasks of another program that measure a model's abilities: lm-evaluation-harness, if Python is available. The
// section `evaluate.lm_eval` of a job asks for them; they are measured before and after the edit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lancet/eval/askable_model.h"
#include "lancet/eval/metrics.h"
#include "lancet/spec/evaluation_options.h"

namespace lancet {

/// The score of one task.
struct TaskScore {
  std::string task = {};
  std::string metric = {};  ///< "acc,none", as the program names it
  double value = 0;
  int64_t questions = 0;  ///< number of questions whose mean it is
  Unit unit = Unit::kShare;
  Better better = Better::kHigher;
};

class TaskRunner {
 public:
  virtual ~TaskRunner() = default;
  /// Checks the tasks before a model is loaded. Throws: ConfigError for unknown tasks.
  virtual void check(const TaskOptions& options) const = 0;
  /// Runs the tasks. Equal options give the same scores in the same order. Throws: ConfigError for what cannot be run;
  /// errors of the model, Cancelled included.
  virtual std::vector<TaskScore> run(const AskableModel& model, const TaskOptions& options) const = 0;
};

}  // namespace lancet
