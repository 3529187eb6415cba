// How long work still takes, by what was measured of it so far. Pure arithmetic: the time is handed in.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "lancet/core/reporter.h"

namespace lancet {

double seconds_between(StageTime from, StageTime to);

/// Work in any unit whose pieces take about equally long: steps, tokens, bytes.
struct WorkSoFar {
  double done = 0;
  double left = 0;
};

/// How fast work goes. What was done lately counts: a machine may become busy, and the first piece has set-up in it.
class WorkPace {
 public:
  explicit WorkPace(StageTime begun) : marks_{{begun, 0}} {}

  /// Notes how much is done at a time; to be called whenever more is.
  void note(StageTime now, double done);

  /// Seconds that the work still takes; nullopt: too little was measured to say, or nothing is left.
  std::optional<double> seconds_left(StageTime now, const WorkSoFar& work) const;

 private:
  struct Mark {
    StageTime when;
    double done;
  };
  std::vector<Mark> marks_;  ///< the begin, then the younger ones in order
};

/// Items that take one step after another, at most so many, and of which some are over sooner: requests whose values
/// are found, documents that a model ends. How many steps those under way and those that wait still take is expected by
/// when the others were over (a life table: Kaplan and Meier 1958; beyond the longest item so far every step is as
/// likely to be the last as any before). From any thread.
class StepsAhead {
 public:
  StepsAhead(int64_t items, int64_t most_steps);

  void add_items(int64_t more);
  /// The item takes its next step.
  void step(int64_t item);
  /// The item is over. One that has taken no step was no work at all: it says nothing about the others.
  void end(int64_t item);
  /// The item waits again, from its first step on.
  void restart(int64_t item);

  /// Steps.
  WorkSoFar work() const;
  int64_t count_under_way() const;

 private:
  enum class State : char { kWaiting, kUnderWay, kOver };
  struct Item {
    State state = State::kWaiting;
    int64_t steps = 0;
  };

  mutable std::mutex mutex_;  ///< guards all that follows
  int64_t most_steps_;
  std::vector<Item> items_;
  std::vector<int64_t> ran_;    ///< by number of the step, from 1 on: items that took it
  std::vector<int64_t> ended_;  ///< likewise: items whose last it was
  int64_t done_ = 0;
};

}  // namespace lancet
