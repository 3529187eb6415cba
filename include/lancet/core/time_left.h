// Estimates how long work still takes from its progress so far. Pure arithmetic: callers pass the time.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "lancet/core/reporter.h"

namespace lancet {

double seconds_between(StageTime from, StageTime to);

/// The amount of work, in any unit whose pieces take about equally long: steps, tokens, bytes.
struct WorkSoFar {
  double done = 0;
  double left = 0;
};

/// Estimates the rate of work from recent progress only: a machine may become busy, and the first piece includes
/// set-up.
class WorkPace {
 public:
  explicit WorkPace(StageTime begun) : marks_{{begun, 0}} {}

  /// Records how much is done at a time. Call it whenever more is done.
  void note(StageTime now, double done);

  /// Returns the seconds that the work still takes; nullopt if too little was measured, or if nothing is left.
  std::optional<double> seconds_left(StageTime now, const WorkSoFar& work) const;

 private:
  struct Mark {
    StageTime when;
    double done;
  };
  std::vector<Mark> marks_;  ///< the beginning, then the recent marks in order
};

/// Estimates the steps that are left of items that take one step after another, up to a maximum. Some items end sooner:
/// requests whose values are found, documents that the model ends. The steps of running and waiting items are estimated
/// from when other items ended (a life table: Kaplan and Meier 1958). Beyond the longest item so far, every step is as
/// likely to be the last as any step before. May be called from any thread.
class StepsAhead {
 public:
  StepsAhead(int64_t items, int64_t most_steps);

  void add_items(int64_t more);
  /// Notes that the item takes its next step.
  void step(int64_t item);
  /// Notes that the item has ended. An item without any step needed no work and says nothing about the others.
  void end(int64_t item);
  /// Notes that the item waits again and restarts from its first step.
  void restart(int64_t item);

  /// Returns the work in steps.
  WorkSoFar work() const;
  int64_t count_under_way() const;

 private:
  enum class State : char { kWaiting, kUnderWay, kOver };
  struct Item {
    State state = State::kWaiting;
    int64_t steps = 0;
  };

  mutable std::mutex mutex_;  ///< guards the members below
  int64_t most_steps_;
  std::vector<Item> items_;
  std::vector<int64_t> ran_;    ///< by the number of the step, from 1 on: how many items took it
  std::vector<int64_t> ended_;  ///< by the number of the step, from 1 on: how many items ended with it
  int64_t done_ = 0;
};

}  // namespace lancet
