// The progress of a stage of work. It is reported to the reporter of the thread that begins the stage.
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

// A heartbeat. If a stage is under way and nothing was reported for a minute, a line names the stage, how far it is and
// how long it has run, so that a long solve does not look like a hang.

/// Seconds without a report after which the heartbeat reports.
inline constexpr double kHeartbeatSeconds = 60.0;

/// Reports a stage from a thread of its own until it is destroyed. If several heartbeats live, only the youngest
/// reports. It reports to the reporter of the thread that creates it, unless that reporter wants no progress.
class Heartbeat {
 public:
  /// `now` returns how far the stage is; the heartbeat adds the time to its line. It is called from another thread.
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

/// A heartbeat for a stage that has no Progress, or has one only for parts of its work.
class StageHeartbeat {
 public:
  explicit StageHeartbeat(const std::string& name)
      : heartbeat_([name] { return StageProgress{.stage = name, .line = name}; }) {}

 private:
  Heartbeat heartbeat_;
};

/// Reports the progress of one stage: "values  64/100 requests  step 120/200  3.1/s  12 s left". The reporter decides
/// how often it is called (ProgressStyle). After a minute without progress a heartbeat is shown. The last line says how
/// long the stage took. The line shows the time left, estimated from the recent rate (WorkPace): from two seconds on if
/// a twentieth of the work is done, from ten seconds on in any case. Every step calls Reporter::step(), so a cancelled
/// stage ends there.
class Progress {
 public:
  /// `total` 0: unknown. `note`: the text of note(), shown from the first line on.
  Progress(std::string stage, int64_t total, std::string unit, std::string note = {});
  ~Progress();  ///< calls finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Counts more work as done. May be called from any thread.
  void advance(int64_t done = 1);
  void set(int64_t done);
  /// Counts work that was done before this run, which begins now. It counts as done but does not enter the rate.
  void skip(int64_t done);
  /// Divides the work into pieces that take about equally long, for a stage whose `total` is not done evenly. The time
  /// left is estimated from the pieces. `name` is shown, "step 12/250"; if it is empty, the pieces are not shown.
  void measure_by(std::string name, int64_t pieces);
  /// Adds to the number of pieces of this run; a negative number reduces it.
  void expect_pieces(int64_t more);
  /// Takes the time left from the result of `work`, in a unit of its own, for work whose amount may turn out smaller or
  /// larger. `work` is called from any thread, also during a step of another thread, until finish().
  void estimate_by(std::function<WorkSoFar()> work);
  /// Counts pieces as done. Pieces that turned out not to be needed count too: the estimate assumes that the rest of
  /// the work saves as many.
  void advance_pieces(int64_t done = 1);
  /// Replaces the text at the end of the line: "loss 0.31".
  void note(std::string text);
  void finish();

 private:
  void draw();
  StageProgress now() const;
  std::string line() const;
  /// Returns the work of this run. Nothing is left if the end is unknown.
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
  std::mutex mutex_;  ///< guards all members that change
  std::optional<Heartbeat> heartbeat_;
};

/// Returns "850 ms", "12.3 s", "4 min 10 s", "2 h 05 min".
std::string duration_text(double seconds);

}  // namespace lancet
