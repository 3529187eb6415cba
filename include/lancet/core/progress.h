// How far a stage of work is, for the reporter of the thread that begins it.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "lancet/core/reporter.h"
#include "lancet/core/time_left.h"

namespace lancet {

// A sign of life. When nothing was told for a minute although a stage is under way, a line says which stage, how far
// it is and for how long it has run: a long solve must not look like a hang.

/// How long nothing may be told.
inline constexpr double kHeartbeatSeconds = 60.0;

/// Speaks for a stage from a thread of its own until it is destroyed; of several that live, the youngest speaks. It
/// speaks to the reporter of the thread that makes it, and not where that wants no progress.
class Heartbeat {
 public:
  /// `now`: how far the stage is; the time is added to its line. Called from another thread.
  explicit Heartbeat(std::function<StageProgress()> now);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  bool is_due() const;
  void watch(const std::stop_token& stop);

  std::function<StageProgress()> now_;
  Reporter& reporter_ = reporter();
  StageTime begun_ = stage_now();
  std::jthread thread_;  // last: it uses the rest
};

/// A stage that has no Progress of its own, or only for parts of it.
class StageHeartbeat {
 public:
  explicit StageHeartbeat(const std::string& name)
      : heartbeat_([name] { return StageProgress{.stage = name, .line = name}; }) {}

 private:
  Heartbeat heartbeat_;
};

/// Progress of one stage: "values  64/100 requests  step 120/200  3.1/s  12 s left". Told as often as the reporter
/// wants it (ProgressStyle). Without any progress for a minute a heartbeat is shown. The last line says how long the
/// stage took. How much time is left is said throughout, by the pace of late (WorkPace): after two seconds when a
/// twentieth is done, after ten seconds in any case. Every step is a Reporter::step(): a stage that is cancelled ends
/// there.
class Progress {
 public:
  /// total 0: unknown. `note`: as note(), from the first line on.
  Progress(std::string stage, int64_t total, std::string unit, std::string note = {});
  ~Progress();  ///< finishes
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Counts more work as done. Any thread may call it.
  void advance(int64_t done = 1);
  void set(int64_t done);
  /// Work done before this run, which began just now: it counts as done, but says nothing about the rate.
  void skip(int64_t done);
  /// The work as pieces that take about equally long, for a stage whose `total` is not done evenly: the time left is
  /// taken from them. `name`: shown too, "step 12/250"; empty: not shown.
  void measure_by(std::string name, int64_t pieces);
  /// More pieces than that, or fewer, turn out to be the work of this run.
  void expect_pieces(int64_t more);
  /// The time left is taken from what this says is done and left, in a unit of its own: for work of which less, or
  /// more, may turn out to be needed. Called from any thread, also from another one's step, until finish().
  void estimate_by(std::function<WorkSoFar()> work);
  /// Pieces that turned out not to be needed count as done too: as many will be spared by the rest of the work.
  void advance_pieces(int64_t done = 1);
  /// Replaces the tail of the line: "loss 0.31".
  void note(std::string text);
  void finish();

 private:
  void draw();
  StageProgress now() const;
  std::string line() const;
  /// Returns the work of this run; none is left where its end is not known.
  WorkSoFar work() const;

  std::string stage_;
  std::string unit_;
  std::string note_;
  std::string piece_;
  int64_t total_;
  int64_t done_ = 0;
  int64_t skipped_ = 0;
  int64_t pieces_ = 0;  ///< 0: `total` measures the work
  int64_t pieces_done_ = 0;
  bool finished_ = false;
  Reporter& reporter_ = reporter();
  StageTime begun_ = stage_now();
  StageTime drawn_{};
  WorkPace pace_{begun_};
  std::function<WorkSoFar()> estimate_;
  std::mutex mutex_;  ///< guards all that changes
  std::optional<Heartbeat> heartbeat_;
};

/// "850 ms", "12.3 s", "4 min 10 s", "2 h 05 min".
std::string duration_text(double seconds);

}  // namespace lancet
