// Tasks of another program that show what a model can do: lm-evaluation-harness, where Python is at hand. Asked for
// under `evaluate.lm_eval` of a job, measured before and after the edit.
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

/// What a task gave.
struct TaskScore {
  std::string task = {};
  std::string metric = {};  ///< "acc,none", as the program names it
  double value = 0;
  int64_t questions = 0;  ///< that it is the mean of
  Unit unit = Unit::kShare;
  Better better = Better::kHigher;
};

class TaskRunner {
 public:
  virtual ~TaskRunner() = default;
  /// Checks the tasks before a model is loaded. Throws: ConfigError for tasks that are not known.
  virtual void check(const TaskOptions& options) const = 0;
  /// Runs the tasks; gives the same scores in the same order for equal options. Throws: ConfigError for what cannot be
  /// run; what the model throws, Cancelled among it.
  virtual std::vector<TaskScore> run(const AskableModel& model, const TaskOptions& options) const = 0;
};

}  // namespace lancet
